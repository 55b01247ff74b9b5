/** Schemas for query values, which are all texts. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

/** A whole number between two bounds, with a default. */
export const wholeText = (min: number, max: number, fallback: number) =>
  v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number), whole(min, max)), String(fallback))
