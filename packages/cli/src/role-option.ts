/** The `--role` option of the pairing commands. */
import { AppError, ROLES, type Role } from '@sluice/sdk'
import type { CliContext } from './context.ts'

/** Undefined where the option is absent. Throws `invalid_request` for anything but a role. */
export function roleOption({ options: { role } }: Pick<CliContext, 'options'>): Role | undefined {
  if (role === undefined) return undefined
  const known = ROLES.find((one) => one === role)
  if (!known) throw new AppError('invalid_request', `--role must be ${ROLES.join(' or ')}; got '${role}'`)
  return known
}
