/** Schemas of query values that several routes share. Every query value is a text. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

/** A whole number between two bounds, with a default. */
export const wholeText = (min: number, max: number, fallback: number) =>
  v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number), whole(min, max)), String(fallback))

/** A text of at least one character; absent means that the filter is not applied. */
export const filterText = v.exactOptional(v.pipe(v.string(), v.minLength(1)))

/** A yes-or-no value. */
export const flag = v.picklist(['true', 'false'])
