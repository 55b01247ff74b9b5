import { describe, expect, test } from 'vitest'
import { inputDescription, parseManifest, signedText } from './manifest.ts'

const parsed = (more: object = {}) =>
  parseManifest(Buffer.from(JSON.stringify({ name: 'shout', version: '1.0.0', description: 'Shouts', sha256: '0'.repeat(64), ...more })))

describe('parseManifest', () => {
  test.each([
    [{ input: 'The text to shout' }],
    [{ input: { type: 'string', description: 'The text to shout' } }],
    [{ input: { type: 'object', properties: { input: { type: 'string', description: 'The text to shout' } }, required: ['input'] } }],
    [{ input: { properties: { input: { type: 'string', description: 'The text to shout' } } } }],
  ])('reads the description of the input from %j', (manifest) => {
    expect(inputDescription(parsed(manifest))).toBe('The text to shout')
  })

  test('uses a default description of the input', () => {
    expect(inputDescription(parsed())).toBe('The input of the plugin')
    expect(inputDescription(parsed({ input: { type: 'string' } }))).toBe('The input of the plugin')
  })

  test.each([
    [{ input: { type: 'number' } }],
    [{ input: { type: 'object', properties: { input: { type: 'string' }, other: { type: 'string' } } } }],
    [{ input: 'two\nlines' }],
    [{ input: 7 }],
    [{ inputs: 'a text' }],
  ])('refuses %j as the description of the input', (manifest) => {
    expect(() => parsed(manifest)).toThrow(expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('input') }))
  })

  test('the signature covers the description of the input', () => {
    expect(signedText(parsed({ input: 'a' }))).not.toBe(signedText(parsed({ input: 'b' })))
    expect(signedText(parsed())).toMatch(/^\["sluice-plugin\/1",.*,null\]$/)
  })
})
