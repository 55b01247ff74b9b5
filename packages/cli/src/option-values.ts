/** Reads and checks values of command line options. */
import { AppError, ROLES, type Role } from '@sluice/sdk'
import type { CliContext } from './context.ts'

/** Returns the text of an option; undefined if it is absent or empty. */
export const textOption = ({ options }: CliContext, name: string): string | undefined => {
  const value = options[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

const SESSION = /^[A-Za-z0-9._-]{1,128}$/

/** Returns the name of `--session`; undefined if it is absent. Throws `invalid_request` for any other text than a name. */
export function sessionOption(context: CliContext): string | undefined {
  const session = textOption(context, 'session')
  if (session === undefined || SESSION.test(session)) return session
  throw new AppError('invalid_request', `a session name has 1 to 128 of A-Z a-z 0-9 . _ -, not '${session}'`)
}

/**
 * Parses a whole number from `min` to `max`. Throws `invalid_request` for any other text; `name` is the option or command that
 * the error names.
 */
export function wholeNumber(name: string, text: string, min: number, max: number = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text)
  if (/^\d{1,15}$/.test(text) && number >= min && number <= max) return number
  const bounds = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`
  throw new AppError('invalid_request', `${name} wants a whole number ${bounds}, not '${text}'`)
}

/** The largest page of a list of the API. */
export const PAGE_MAX = 500
/** The largest number of entries that one command lists. */
export const LIMIT_MAX = 100_000
const LIMIT_DEFAULT = 50

/** Returns the value of `--limit`, 1 to 100,000; 50 if it is absent. Throws `invalid_request` for any other value. */
export const limitOption = ({ options: { limit } }: CliContext): number =>
  typeof limit === 'string' ? wholeNumber('--limit', limit, 1, LIMIT_MAX) : LIMIT_DEFAULT

/** Returns the value of `--limit` of a list that is printed as a whole without it. Throws `invalid_request` for any other value than 1 to 100,000. */
export const limitOfAll = ({ options: { limit } }: CliContext): number =>
  typeof limit === 'string' ? wholeNumber('--limit', limit, 1, LIMIT_MAX) : Number.POSITIVE_INFINITY

/** Returns the value of `--role`; undefined if it is absent. Throws `invalid_request` for any other value than a role. */
export function roleOption({ options: { role } }: CliContext): Role | undefined {
  if (role === undefined) return undefined
  const known = ROLES.find((one) => one === role)
  if (!known) throw new AppError('invalid_request', `--role must be ${ROLES.join(' or ')}; got '${role}'`)
  return known
}
