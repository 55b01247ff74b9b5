/** `sluice dashboard`: prints a link that signs a browser in once. The code is in the fragment, which no browser sends to a server. */
import { parseArgs } from 'node:util'
import { AppError, CATALOGUE, type Command, errorText, type Host, ROLES, type Role } from '@sluice/sdk'
import { linkAt, pageAddresses } from './addresses.ts'
import { LINK_MS, type SignInLinks } from './sign-in-links.ts'

export const dashboardCommand = (host: Host, links: SignInLinks): Command => ({
  name: 'dashboard',
  ...CATALOGUE.dashboard.commandHelp.dashboard,
  async run({ args, json, print, warn }) {
    const { qr, role } = readArguments(args)
    const known = host.service('addresses')?.()
    const addresses = known && pageAddresses(known)
    if (!addresses) throw new AppError('unavailable', 'No daemon runs here: start one with `sluice daemon`')
    const { code, expiresAtMs } = await links.create(role)
    const { here, elsewhere } = addresses
    if (json) {
      const other = elsewhere === undefined || elsewhere === here ? {} : { url_elsewhere: linkAt(elsewhere, code) }
      print(JSON.stringify({ url: linkAt(here, code), ...other, role, expires_at: new Date(expiresAtMs).toISOString() }, null, 2))
      return 0
    }
    print(linkAt(here, code))
    if (elsewhere !== undefined && elsewhere !== here) print(linkAt(elsewhere, code))
    if (qr) {
      const { renderUnicodeCompact } = await import('uqr')
      for (const line of renderUnicodeCompact(linkAt(elsewhere ?? here, code)).split('\n')) print(line)
      if (elsewhere === undefined) warn('A phone cannot reach this address: set [gateway] public_url, or bind an address of the network.')
    }
    warn(`The link works once, within ${LINK_MS / 1000} seconds.`)
    return 0
  },
})

function readArguments(args: readonly string[]): { readonly qr: boolean; readonly role: Role } {
  let values: { readonly qr?: boolean; readonly role?: string }
  try {
    values = parseArgs({ args: [...args], options: { qr: { type: 'boolean' }, role: { type: 'string' } } }).values
  } catch (cause) {
    throw new AppError('invalid_request', errorText(cause), { cause })
  }
  const role = ROLES.find((each) => each === (values.role ?? ROLES[0]))
  if (role === undefined) throw new AppError('invalid_request', `--role wants one of ${ROLES.join(', ')}, not '${values.role}'`)
  return { qr: values.qr === true, role }
}
