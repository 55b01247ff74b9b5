import { Secret } from '@sluice/sdk'
import { processorMs } from '@sluice/testkit/processor-time'
import { describe, expect, test } from 'vitest'
import { createScrub } from './scrub.ts'

const scrub = createScrub(() => [new Secret('correct horse battery'), new Secret('short')])

const SECRETS = [
  ['api_key=9f8e7d6c5b4a3210', '9f8e7d6c5b4a3210'],
  ['"apiKey": "abcdefghij"', 'abcdefghij'],
  ['DB_PASSWORD=hunter2hunter2', 'hunter2hunter2'],
  ['password: swordfish', 'swordfish'],
  ["client_secret = 'with some spaces'", 'with some spaces'],
  ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'wJalrXUtnFEMI'],
  ['Authorization: Bearer abcdef0123456789abcdef', 'abcdef0123456789abcdef'],
  ['authorization: basic dXNlcjpwYXNzd29yZDEyMw==', 'dXNlcjpwYXNzd29yZDEyMw'],
  ['key sk-proj-abcdefghijklmnop1234 found', 'sk-proj-abcdefghijklmnop1234'],
  ['ghp_abcdefghijklmnopqrstuvwxyz0123456789', 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'],
  ['AKIAIOSFODNN7EXAMPLE', 'AKIAIOSFODNN7EXAMPLE'],
  ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N', 'eyJhbGciOiJIUzI1NiJ9'],
  ['postgres://app:s3cretpw@db.internal/app', 's3cretpw'],
  ['-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----', 'MIIEpAIBAAKCAQEA'],
  ['-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA, cut off', 'MIIEpAIBAAKCAQEA'],
  ['it says correct horse battery here', 'correct horse battery'],
] as const

describe('a secret is masked', () => {
  for (const [text, secret] of SECRETS) {
    test(text.slice(0, 40), () => {
      expect(scrub(text)).not.toContain(secret)
      expect(scrub(text)).toContain('[redacted]')
    })
  }
})

test('keeps code, counters, prose and short configured values', () => {
  for (const text of [
    'const token = readTokenFrom(request)',
    'return { password: passwordHash }',
    'secret = config.webhookSecret',
    'total_tokens: 1234567890',
    'The token bucket refills; a password is never stored in the clear.',
    'api_key: <your key>',
    'short',
    'see https://example.org/a:b/c@d',
  ]) {
    expect(scrub(text)).toBe(text)
  }
})

test('hostile text costs linear time', () => {
  for (const piece of ['token=', 'eyJa-', 'eyJaaaaaaaa.', '-----BEGIN PRIVATE KEY-----', 'bearer ', '//a:', 'password="']) {
    const before = processorMs()
    scrub(piece.repeat(Math.ceil(500_000 / piece.length)))
    expect(processorMs() - before, piece).toBeLessThan(2000)
  }
})
