/** History ids: 64-bit numbers, which the mail API writes as texts and pushes as numbers. */
import * as v from 'valibot'

const digits = v.pipe(v.string(), v.regex(/^\d{1,20}$/))

export const historyIdSchema = v.pipe(
  v.union([digits, v.pipe(v.number(), v.safeInteger(), v.minValue(0))]),
  v.transform((value) => BigInt(value)),
)
