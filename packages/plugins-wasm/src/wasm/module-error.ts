/** The refusal of a module. It is not an `AppError`, so that the worker that throws it does not have to load the sdk. */

const CHARS_MAX = 200

/** `message` is a clause that follows "the module" or "the plugin", such as "has no memory". */
export class ModuleError extends Error {
  override readonly name = 'ModuleError'
}

/** Makes a name from a module safe to print: shortened, with every character that is not printable ASCII replaced. */
export const printable = (text: string): string => text.slice(0, CHARS_MAX).replace(/[^\x20-\x7e]/g, '?')
