"""European option prices by the Black-Scholes formula, the implied volatility of a market, and the exposure of a portfolio.

Written as one writes it with NumPy; nothing in here knows of tierup.

    python examples/options.py [contracts] [scenarios]
"""

import hashlib
import sys
import time

import numpy as np


def normal_cdf(x):
    """The standard normal distribution function, by the rational approximation 26.2.17 of Abramowitz and Stegun."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * series
    return np.where(x >= 0.0, 1.0 - tail, tail)


def black_scholes(spot, strike, years, rate, volatility):
    """Prices of calls and puts, and the calls' delta."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    delta = normal_cdf(d1)
    call = spot * delta - discounted * normal_cdf(d2)
    put = call - spot + discounted
    return call, put, delta


def implied_volatility(price, spot, strike, years, rate, rounds=12):
    """Volatilities at which the formula gives the prices: bisection on all contracts at once."""
    low = np.full_like(price, 0.01)
    high = np.full_like(price, 2.0)
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        call, _, _ = black_scholes(spot, strike, years, rate, middle)
        too_high = call > price
        high = np.where(too_high, middle, high)
        low = np.where(too_high, low, middle)
    return 0.5 * (low + high)


def market(contracts, seed=11):
    """Contracts as random numbers give them."""
    rng = np.random.default_rng(seed)
    spot = rng.uniform(80.0, 120.0, contracts)
    strike = spot * rng.uniform(0.8, 1.2, contracts)
    years = rng.uniform(0.1, 2.0, contracts)
    volatility = rng.uniform(0.1, 0.6, contracts)
    position = rng.integers(-100, 100, contracts).astype(float)
    return spot, strike, years, volatility, position


def exposure(spot, strike, years, rate, volatility, position, scenarios):
    """Worst loss of the portfolio over shocks of the spot, with the shock that causes it."""
    today, _, _ = black_scholes(spot, strike, years, rate, volatility)
    worst, at = 0.0, None
    for shock in np.linspace(-0.3, 0.3, scenarios):
        then, _, _ = black_scholes(spot * (1.0 + shock), strike, years, rate, volatility)
        loss = float(((today - then) * position).sum())
        if loss > worst:
            worst, at = loss, float(shock)
    return worst, at


def main():
    contracts = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    scenarios = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    spot, strike, years, volatility, position = market(contracts)
    start = time.perf_counter()
    call, put, delta = black_scholes(spot, strike, years, 0.03, volatility)
    implied = implied_volatility(call, spot, strike, years, 0.03)
    worst, at = exposure(spot, strike, years, 0.03, volatility, position, scenarios)
    seconds = time.perf_counter() - start
    print(
        f"mean call {call.mean():.6f}, mean put {put.mean():.6f}, largest error of the volatility {np.abs(implied - volatility).max():.6f}"
    )
    print(f"worst loss {worst:.4f} at a shock of {at}")
    print("digest:", hashlib.sha256(b"".join(a.tobytes() for a in (call, put, delta, implied))).hexdigest()[:32])
    print(f"seconds: {seconds:.3f}")


if __name__ == "__main__":
    main()
