import { expect, test } from 'vitest'
import { sayParts } from './form-provider.ts'

test.each([
  ['Latin', 'Hello there. '.repeat(400)],
  ['Chinese', '你好，世界。'.repeat(200)],
  ['Cyrillic', 'Привет, мир. '.repeat(200)],
  ['emoji', '😀'.repeat(1000)],
])('each part of a text in %s is within the limits of Twilio, and nothing is lost', (_, text) => {
  const parts = sayParts(text)
  for (const part of parts) {
    expect(part.length).toBeLessThanOrEqual(3000)
    expect(encodeURIComponent(part).length).toBeLessThanOrEqual(4500)
  }
  expect(parts.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
})
