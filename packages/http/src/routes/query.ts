/** Schemas of query values that several routes share. Every query value is a text. */
import { AppError, whole } from '@sluice/sdk'
import * as v from 'valibot'

/** A whole number between two bounds, with a default. */
export const wholeText = (min: number, max: number, fallback: number) =>
  v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number), whole(min, max)), String(fallback))

/** A text of at least one character; absent means that the filter is not applied. */
export const filterText = v.exactOptional(v.pipe(v.string(), v.minLength(1)))

/** A yes-or-no value. */
export const flag = v.picklist(['true', 'false'])

/** One or more values, separated by commas. */
export const listText = <const Value extends string>(values: readonly Value[]) =>
  v.exactOptional(
    v.pipe(
      v.string(),
      v.transform((text) => text.split(',')),
      v.array(v.picklist(values)),
      v.description(`One or more of ${values.join(', ')}, separated by commas`),
    ),
  )

/** A page of rows, and the cursor of the next page; null is the end. `rows` has one row more than `limit` if there is a next page. */
export function pageOf<Row, Cursor>(rows: readonly Row[], limit: number, cursorOf: (last: Row) => Cursor) {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { page, next: rows.length > limit && last !== undefined ? cursorOf(last) : null }
}

/** Writes the key of a row as a cursor. */
export const cursorOf = (key: readonly (string | number)[]): string => Buffer.from(JSON.stringify(key)).toString('base64url')

/** Reads the key of a row from a cursor. Throws `invalid_request` for a text that `cursorOf` did not write for such a key. */
export function readCursor<Key extends v.GenericSchema>(cursor: string, key: Key): v.InferOutput<Key> {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), key), Buffer.from(cursor, 'base64url').toString())
  if (read.success) return read.output
  throw new AppError('invalid_request', 'The cursor is not one that this list returned.')
}
