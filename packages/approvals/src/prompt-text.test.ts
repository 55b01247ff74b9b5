import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { promptParts } from './prompt-text.ts'

const asked = (message: string, gate: 'tool' | 'sop' = 'tool') => ({
  gate,
  title: 'shell wants to run',
  message,
  approveKeywords: ['yes'],
  rejectKeywords: ['no'],
})
const BLOCK = /```\n([\s\S]*?)\n```/g
/** The code in the code blocks of all messages, joined. */
const codeOf = (parts: readonly string[]): string => parts.flatMap((part) => Array.from(part.matchAll(BLOCK), ([, code]) => code)).join('')

const line = fc
  .array(fc.constantFrom('a', 'rm', ' ', '  ', '\u{1f600}', '&', '<', '**', '||', '\\n', ': ', 'x'.repeat(200)), {
    minLength: 1,
    maxLength: 200,
  })
  .map((words) => `command: ${words.join('')}|end`)

describe('a prompt about a tool call', () => {
  test('shows exactly the call, in any number of messages', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 3 }), fc.constantFrom('utf16', 'codepoint', 'byte' as const), (lines, unit) => {
        const message = lines.join('\n')
        const parts = promptParts(asked(message), { text: 1000, unit }, {})
        expect(codeOf(parts)).toBe(message)
        for (const part of parts) for (const [, code = ''] of part.matchAll(BLOCK)) expect(code).toMatch(/^\S[\s\S]*\S$|^\S$/u)
      }),
      { numRuns: 300 },
    )
  })

  test('says in every message but the last that the call goes on', () => {
    const parts = promptParts(asked(`command: ${'x'.repeat(3000)}|`), { text: 2000, unit: 'utf16' }, {})
    expect(parts).toHaveLength(2)
    expect(parts[0]).toMatch(/\(This call goes on in the next message\.\)$/)
    expect(parts[1]).toMatch(/^```\n/)
    expect(parts[1]).toContain('Reply with `yes` to approve.')
  })

  test('is a code block where a platform could read markup, and plain text elsewhere', () => {
    const limits = { text: 2000, unit: 'utf16' } as const
    for (const command of ['ls ||; rm||', '[ls](x)', '~~rm~~', 'a_b_c', ':rm:', '<@1>', '# ls'])
      expect(promptParts(asked(`command: ${command}`), limits, {})[0]).toContain(`\`\`\`\ncommand: ${command}\n\`\`\``)
    expect(promptParts(asked('command: ls -l'), limits, {})[0]).toMatch(/^shell wants to run\n\ncommand: ls -l\n\nReply/)
    expect(promptParts(asked('**Deploy** now?', 'sop'), limits, {})[0]).toMatch(/^shell wants to run\n\n\*\*Deploy\*\* now\?\n\nReply/)
  })
})
