/** `POST /api/dashboard/links`: a link that signs the browser of another person in, also as a QR code. */
import { AppError, defineRoute, type Host, ROLES, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { linkAt, pageAddresses } from './addresses.ts'
import type { SignInLinks } from './sign-in-links.ts'

export const linksRoute = (host: Host, links: SignInLinks): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/dashboard/links',
    summary: 'Make a link that signs one browser of another person in, once and within ten minutes',
    auth: 'operator',
    body: v.object({ role: v.picklist(ROLES) }),
    answers: {
      200: {
        description: 'The link',
        schema: v.object({
          url: v.string(),
          reachable: v.pipe(v.boolean(), v.description('False: only a browser on the machine of the daemon reaches the address')),
          qr: v.pipe(v.array(v.string()), v.description('The rows of the QR code: 1 is dark')),
          role: v.picklist(ROLES),
          expires_at: v.string(),
        }),
      },
    },
    async handle({ by, body: { role } }) {
      const known = host.service('addresses')?.()
      const addresses = known && pageAddresses(known)
      if (!addresses) throw new AppError('unavailable', 'The daemon has no address that a browser can open.')
      const { code, expiresAtMs } = await links.invite(role)
      await host.service('audit')?.({ kind: 'pairing_code_created', by, detail: { role, link: true } })
      const url = linkAt(addresses.elsewhere ?? addresses.here, code)
      const { encode } = await import('uqr')
      return {
        url,
        reachable: addresses.elsewhere !== undefined,
        qr: encode(url).data.map((row) => row.map((isDark) => (isDark ? '1' : '0')).join('')),
        role,
        expires_at: new Date(expiresAtMs).toISOString(),
      }
    },
  })
