import { describe, expect, test } from 'vitest'
import {
  allowlistForm,
  isHiddenNumberId,
  normaliseNumber,
  parsePhoneNumber,
  refineAllowedNumbers,
  refineNumbers,
  sharedMobile,
} from './phone-numbers.ts'

describe('parsePhoneNumber', () => {
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
  ])('reads the spelling %j', async (text) => {
    expect(await parsePhoneNumber(text)).toBe('+442079460958')
  })

  test('accepts a number of an unassigned range', async () => {
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
  ])('rejects %j', async (text) => {
    expect(await parsePhoneNumber(text)).toBeUndefined()
  })
})

describe('sharedMobile', () => {
  test.each([
    ['Brazil', '+5511987654321', '+551187654321'],
    ['Mexico', '+525512345678', '+5215512345678'],
    ['Argentina', '+5491123456789', '+541123456789'],
  ])('has one form for both spellings of a number in %s', async (_, shared, other) => {
    expect([sharedMobile(shared), sharedMobile(other)]).toEqual([shared, shared])
    expect([await parsePhoneNumber(shared), await parsePhoneNumber(other)]).toEqual([shared, shared])
  })

  test('returns landlines of Brazil and numbers of other countries unchanged', () => {
    for (const number of ['+551133334444', '+15550002222', '+4917012345678', '+52155123456789', 'US.551187654321'])
      expect(sharedMobile(number)).toBe(number)
  })
})

describe('normaliseNumber', () => {
  test.each([
    ['+15550003333', '+15550003333'],
    [' +1 (555) 000-3333 ', '+15550003333'],
    ['US.15550003333', 'US.15550003333'],
    [' A15550003333 ', 'A15550003333'],
    ['()', ''],
  ])('returns %j as %j', (sender, normal) => {
    expect(normaliseNumber(sender)).toBe(normal)
  })
})

test('allowlistForm has one form for both spellings of a mobile number', () => {
  expect(allowlistForm('55 11 8765-4321')).toBe('+5511987654321')
})

test('isHiddenNumberId accepts a country, a dot and more characters', () => {
  expect(['US.90000000000001', 'br.a_b-c', 'US.', 'USA.1', '+15550003333'].map(isHiddenNumberId)).toEqual([true, true, false, false, false])
})

test('refineAllowedNumbers keeps the other keys of the section', async () => {
  expect(await refineAllowedNumbers({ allowed_numbers: ['0044 20 7946 0958', 'US.90000000000001'], enabled: true })).toEqual({
    value: { allowed_numbers: ['+442079460958', 'US.90000000000001'], enabled: true },
    problems: [],
  })
})

test('refineNumbers returns numbers as E.164 and names entries that match no sender', async () => {
  const options = { key: 'allowed_numbers', isId: (entry: string) => entry === 'id', ids: 'an id' }
  expect(await refineNumbers(['*', '0044 20 7946 0958', ' id ', 'Bob', '0170 1234567'], options)).toEqual({
    value: ['*', '+442079460958', 'id', 'Bob', '0170 1234567'],
    problems: [
      { path: ['allowed_numbers', 3], message: expect.stringContaining('"Bob" can never match a sender') },
      { path: ['allowed_numbers', 4], message: expect.stringContaining('with its country code') },
    ],
  })
})
