import { expect, test } from 'vitest'
import { vcardWords } from './vcard.ts'

// The form of https://www.rfc-editor.org/rfc/rfc6350.html, section 3, and the groups that iOS writes (item1.EMAIL).
const CARD = [
  'BEGIN:VCARD',
  'VERSION:4.0',
  'FN:Bob Ray',
  'N:Ray;Bob;;;',
  'ORG:Example\\, Inc.;Sales',
  'TEL;VALUE=uri;TYPE="voice,home":tel:+1-555-0001',
  'item1.EMAIL;TYPE=INTERNET:bob@example.com',
  'ADR;TYPE=work:;;Main Street 1;Berlin;;10115;Germany',
  'NOTE:Call after\\nnoon\\; a lon',
  ' g line',
  'PHOTO:data:image/jpeg;base64,xyz',
  'END:VCARD',
].join('\r\n')

test('reads numbers, addresses and notes of a vCard in their order', () => {
  expect(vcardWords(CARD)).toEqual([
    'Example, Inc. Sales',
    '+1-555-0001',
    'bob@example.com',
    'Main Street 1 Berlin 10115 Germany',
    'Call after noon; a long line',
  ])
})

test('leaves out members that the caller has already', () => {
  expect(vcardWords(CARD, ['TEL', 'ORG', 'ADR', 'NOTE'])).toEqual(['bob@example.com'])
})

test('reads nothing from a text other than a vCard', () => {
  expect(vcardWords('')).toEqual([])
  expect(vcardWords('hello: world')).toEqual([])
})
