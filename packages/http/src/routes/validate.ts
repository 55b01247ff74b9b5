/** Checks the query and the body of a request against the schemas of its route. */
import { expectation } from '@sluice/config'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'

/** Throws `invalid_request` that names the member and what it must be, never the value that was sent. */
export function validate(schema: v.GenericSchema, value: unknown, what: string): unknown {
  const result = v.safeParse(schema, value, { abortEarly: true })
  if (result.success) return result.output
  throw new AppError('invalid_request', `The ${what} is not valid: ${expectation(result.issues[0], schema)}`)
}
