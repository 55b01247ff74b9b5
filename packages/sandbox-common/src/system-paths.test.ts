import { describe, expect, test } from 'vitest'
import { PUBLIC_ETC } from './system-paths.ts'

describe('PUBLIC_ETC', () => {
  test.each([
    'shadow',
    'ssh/ssh_host_rsa_key',
    'ssl/private/ssl-cert-snakeoil.key',
    'pki/tls/private/localhost.key',
    'pki/consumer/key.pem',
    'pki/entitlement/1-key.pem',
    'pki/nssdb/key4.db',
  ])('does not include /etc/%s', (secret) => {
    expect(PUBLIC_ETC.filter((name) => `${secret}/`.startsWith(`${name}/`))).toEqual([])
  })
})
