"""Code objects in, code objects out: decode, canonical instructions, flow, assembler, verifier, splicing.

What comes in is a code object (and, for splicing, the sites); what goes out is a `Program`, its canonical instructions, facts about
its flow, or new code that the verifier has passed. Imports nothing of tierup but this package.
"""
