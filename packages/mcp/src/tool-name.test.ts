import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toolName } from './tool-name.ts'

test('a name consists of the names of the server and the tool', () => {
  expect(toolName('files', 'read-file')).toBe('mcp__files__read-file')
})

test('a long or unusual name is changed and ends with a hash', () => {
  expect(toolName('a', 'read file')).toMatch(/^mcp__a__read_file_[0-9a-f]{8}$/)
  expect(toolName('a', 'x'.repeat(80))).toMatch(/^mcp__a__x{47}_[0-9a-f]{8}$/)
})

test('every name fits every model API, and two tools never share one', () => {
  const server = fc.stringMatching(/^[A-Za-z0-9-]{1,32}$/)
  fc.assert(
    fc.property(server, fc.string({ minLength: 1, unit: 'binary' }), fc.string({ minLength: 1, unit: 'binary' }), (name, one, other) => {
      expect(toolName(name, one)).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      if (one !== other) expect(toolName(name, one)).not.toBe(toolName(name, other))
    }),
  )
})
