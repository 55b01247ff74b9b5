import { isAllowed } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { coversAddress, normaliseAddress, onlyAddress } from './address.ts'

test.each<[header: string, address: string]>([
  ['ada@example.com', 'ada@example.com'],
  ['  Ada@Example.COM ', 'ada@example.com'],
  ['<ada@example.com>', 'ada@example.com'],
  ['Ada Lovelace <ada@example.com>', 'ada@example.com'],
  ['"Lovelace, Ada" <ada@example.com>', 'ada@example.com'],
  ['"Ada \\"the\\" <boss@evil.test>" <ada@example.com>', 'ada@example.com'],
  ['Lovelace, Ada <ada@example.com>', 'ada@example.com'],
  ['ada@example.com (Ada (the \\) one))', 'ada@example.com'],
  ['(boss@evil.test) Ada <ada@example.com>', 'ada@example.com'],
  ['boss@corp.test <ada@example.com>', 'ada@example.com'],
  ['böt+x@ex.org', 'böt+x@ex.org'],
])('onlyAddress(%j) is %s', (header, address) => {
  expect(onlyAddress([header])).toBe(address)
})

test.each([
  '',
  'Ada',
  'ada@',
  '@example.com',
  'ada@example.com, boss@corp.test',
  'boss@corp.test, Ada <ada@example.com>',
  'Ada <ada@example.com>, Boss <boss@corp.test>',
  'Boss <boss@corp.test> <ada@example.com>',
  'Ada <ada@example.com> boss@corp.test',
  'team: ada@example.com;',
  'a b@example.com',
  '<ada@example.com',
  '"Ada <ada@example.com>',
  '(Ada <ada@example.com>',
  '"ada lovelace"@example.com',
  'ada@corp.test@example.com',
  'ada@example.com\u0000',
  // In lower case the Kelvin sign is the letter k.
  '\u212aate@example.com',
])('onlyAddress finds no single address in %j', (header) => {
  expect(onlyAddress([header])).toBeUndefined()
})

test('onlyAddress needs exactly one header', () => {
  expect(onlyAddress(['ada@example.com', 'ada@example.com'])).toBeUndefined()
  expect(onlyAddress([])).toBeUndefined()
})

test('coversAddress matches addresses and whole domains in any spelling', () => {
  const allowed = (list: string[], sender: string) => isAllowed(list, sender, normaliseAddress, coversAddress)
  for (const entry of ['ada@example.com', 'ADA@Example.com', '@example.com', 'example.com', ' Example.COM ', '*']) {
    expect(allowed([entry], 'ada@example.com'), entry).toBe(true)
    expect(allowed([entry], 'Ada@EXAMPLE.com'), entry).toBe(true)
  }
  for (const entry of [
    'bob@example.com',
    'ample.com',
    'example.org',
    '@sub.example.com',
    'com',
    '@',
    '',
    'a@example.com',
    'xada@example.com',
  ]) {
    expect(allowed([entry], 'ada@example.com'), entry).toBe(false)
  }
  expect(allowed(['example.com'], 'ada@sub.example.com')).toBe(false)
  expect(allowed([], 'ada@example.com')).toBe(false)
  expect(allowed(['example.com'], '')).toBe(false)
})
