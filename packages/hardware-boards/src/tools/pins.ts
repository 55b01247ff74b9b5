/** Inputs that all pin tools share. */
import * as v from 'valibot'

const PIN_MAX = 511

export const device = v.optional(
  v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,35}$/), v.description('Alias such as board_a0; may be left out when only one device fits')),
)

export const pin = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(PIN_MAX), v.description("The board's own number of the pin"))
