import { expect, test } from 'vitest'
import { PUBLIC_ETC } from './sandbox-command.ts'

test.each([
  'shadow',
  'ssh/ssh_host_rsa_key',
  'ssl/private/ssl-cert-snakeoil.key',
  'pki/tls/private/localhost.key',
  'pki/consumer/key.pem',
  'pki/entitlement/1-key.pem',
  'pki/nssdb/key4.db',
])('a command is not shown /etc/%s, even where the daemon may read it', (secret) => {
  expect(PUBLIC_ETC.filter((name) => `${secret}/`.startsWith(`${name}/`))).toEqual([])
})
