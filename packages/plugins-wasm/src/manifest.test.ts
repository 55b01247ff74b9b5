import { expect, test } from 'vitest'
import { inputDescription, parseManifest, signedText } from './manifest.ts'

const parsed = (more: object = {}) =>
  parseManifest(Buffer.from(JSON.stringify({ name: 'shout', version: '1.0.0', description: 'Shouts', sha256: '0'.repeat(64), ...more })))

test.each([
  [{ input: 'The text to shout' }],
  [{ input: { type: 'string', description: 'The text to shout' } }],
  [{ input: { type: 'object', properties: { input: { type: 'string', description: 'The text to shout' } }, required: ['input'] } }],
  [{ input: { properties: { input: { type: 'string', description: 'The text to shout' } } } }],
])('a manifest may define its input: %j', (manifest) => {
  expect(inputDescription(parsed(manifest))).toBe('The text to shout')
})

test('a plugin takes a text, described or not', () => {
  expect(inputDescription(parsed())).toBe('What the plugin is given')
  expect(inputDescription(parsed({ input: { type: 'string' } }))).toBe('What the plugin is given')
})

test.each([
  [{ input: { type: 'number' } }],
  [{ input: { type: 'object', properties: { input: { type: 'string' }, other: { type: 'string' } } } }],
  [{ input: 'two\nlines' }],
  [{ input: 7 }],
  [{ inputs: 'a text' }],
])('another input is refused: %j', (manifest) => {
  expect(() => parsed(manifest)).toThrow(expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('input') }))
})

test('a publisher signs the description of the input, too', () => {
  expect(signedText(parsed({ input: 'a' }))).not.toBe(signedText(parsed({ input: 'b' })))
  expect(signedText(parsed())).toMatch(/^\["sluice-plugin\/1",.*,null\]$/)
})
