/* The extension module tierup._core. */
#include "site.h"

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tierup._core",
    .m_doc = PyDoc_STR("The C core of tierup: sites, guard tree, plan interpreter, kernels."),
    .m_size =
        -1, /* types and tables are process-wide; subinterpreters with a GIL of their own are refused by CPython */
};

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&core_module);
    if (module == NULL) {
        return NULL;
    }
    if (shim_check() < 0 || guard_add_to_module(module) < 0 || live_frame_add_to_module(module) < 0 ||
        site_add_to_module(module) < 0 || trial_add_to_module(module) < 0 || loop_helpers_add_to_module(module) < 0 ||
        plan_add_to_module(module) < 0 || drive_add_to_module(module) < 0 || code_extra_add_to_module(module) < 0 ||
        run_main_add_to_module(module) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
