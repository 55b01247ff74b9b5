/** The refusal of a module; a class of its own because the worker that throws it must load nothing it does not need. */

/** `message` is a clause that follows "the module": "has no memory". */
export class ModuleError extends Error {
  override readonly name = 'ModuleError'
}
