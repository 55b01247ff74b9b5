/** The `path` every file tool takes. */
import * as v from 'valibot'

export const pathInput = (description: string) => v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description))

/** A name as it can stand in a line of its own: control characters and the like are escaped. */
export const printable = (name: string): string => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name) ? JSON.stringify(name) : name)
