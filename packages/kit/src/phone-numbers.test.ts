import { describe, expect, test } from 'vitest'
import { parsePhoneNumber, refineNumbers, sharedMobile } from './phone-numbers.ts'

describe('a telephone number', () => {
  test.each([
    '+442079460958',
    '442079460958',
    '0044 20 7946 0958',
    '+44 (0)20 7946 0958',
    '+44 (020) 7946-0958',
    '+44 20 7946 0958 ext. 12',
    '+442079460958x12',
    '＋４４ ２０ ７９４６ ０９５８',
    '+٤٤٢٠٧٩٤٦٠٩٥٨',
    '+۴۴۲۰۷۹۴۶۰۹۵۸',
    ' +44–20–7946.0958 ',
  ])('is read in the spelling %j', async (text) => {
    expect(await parsePhoneNumber(text)).toBe('+442079460958')
  })

  test('may be one of a range that is not assigned', async () => {
    expect(await parsePhoneNumber('+1 (555) 000-2222')).toBe('+15550002222')
  })

  test.each([
    '',
    ' ',
    '+',
    '+1',
    '00',
    '020 7946 0958',
    '+44 1',
    '+999 123456789',
    '+44 20 7946 0958 0958 0958',
    'Bob',
    '+1-800-FLOWERS',
    '+44 20 7946 0958 or +44 20 7946 0959',
  ])('is not %j', async (text) => {
    expect(await parsePhoneNumber(text)).toBeUndefined()
  })
})

describe('a mobile number that has two spellings', () => {
  test.each([
    ['Brazil', '+5511987654321', '+551187654321'],
    ['Mexico', '+525512345678', '+5215512345678'],
    ['Argentina', '+5491123456789', '+541123456789'],
  ])('of %s has one form', async (_, shared, other) => {
    expect([sharedMobile(shared), sharedMobile(other)]).toEqual([shared, shared])
    expect([await parsePhoneNumber(shared), await parsePhoneNumber(other)]).toEqual([shared, shared])
  })

  test('leaves landlines of Brazil and numbers of other countries as they are', () => {
    for (const number of ['+551133334444', '+15550002222', '+4917012345678', '+52155123456789', 'US.551187654321'])
      expect(sharedMobile(number)).toBe(number)
  })
})

test('an allowlist has each number as E.164 and names each entry that no sender can match', async () => {
  const options = { key: 'allowed_numbers', isId: (entry: string) => entry === 'id', ids: 'an id' }
  expect(await refineNumbers(['*', '0044 20 7946 0958', ' id ', 'Bob', '0170 1234567'], options)).toEqual({
    value: ['*', '+442079460958', 'id', 'Bob', '0170 1234567'],
    problems: [
      { path: ['allowed_numbers', 3], message: expect.stringContaining('"Bob" can never match a sender') },
      { path: ['allowed_numbers', 4], message: expect.stringContaining('with its country code') },
    ],
  })
})
