import { processorMs } from '@sluice/testkit/processor-time'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSopMd, STEPS_MAX } from './parse-sop-md.ts'

const plain = { tools: null, requiresConfirmation: false, kind: 'execute', input: null, output: null }
const md = (...lines: string[]) => ['# Deploy', '', '## Steps', ...lines].join('\n')

describe('parseSopMd', () => {
  test('reads titles, bodies and settings, and ignores other prose', () => {
    const text = `\ufeff# Deploy

1. **This is no step** - it stands outside of the section

## Conditions
- tools: whatever

## STEPS ##
What follows is done in this order.

1. **Check** - Look at the *build*.
   - tools: shell, \`file_read\`, shell
   Then wait.

   1. A list of its own
   - a bullet: with a colon
2.**Approve** — by a person
   * kind: checkpoint
   + requires_confirmation: true
3. Roll out now
   - input: {"to": "$.target", "n": 1}
   - output: {"type": "object"}
   - requires_confirmation: false
4. **Watch**
### A heading below
Its text.
## Notes
5. **Not this** either
`
    const { steps, lines, problems } = parseSopMd(text.replaceAll('\n', '\r\n'))
    expect(problems).toEqual([])
    expect(steps).toEqual([
      {
        ...plain,
        number: 1,
        title: 'Check',
        body: 'Look at the *build*.\nThen wait.\n\n1. A list of its own\n- a bullet: with a colon',
        tools: ['shell', 'file_read'],
      },
      { ...plain, number: 2, title: 'Approve', body: 'by a person', kind: 'checkpoint', requiresConfirmation: true },
      { ...plain, number: 3, title: 'Roll out now', body: '', input: { to: '$.target', n: 1 }, output: { type: 'object' } },
      { ...plain, number: 4, title: 'Watch', body: '### A heading below\nIts text.' },
    ])
    expect(lines).toEqual([11, 17, 20, 24])
  })

  test('keeps code blocks as body text', () => {
    const block = ['```sh', '- tools: evil', '2. **Not a step**', '## Notes', '~~~', '  indented', '```']
    const { steps, problems } = parseSopMd(md('1. **Run** - this:', '', ...block.map((line) => `   ${line}`), '2. **Stop**'))
    expect(problems).toEqual([])
    expect(steps).toEqual([
      { ...plain, number: 1, title: 'Run', body: `this:\n\n${block.join('\n')}` },
      { ...plain, number: 2, title: 'Stop', body: '' },
    ])
    expect(parseSopMd(`\`\`\`\n## Steps\n\`\`\`\n${md('1. **Run**')}`).steps).toHaveLength(1)
  })

  test.each<[string, string[]]>([
    ['', ['there is no section `## Steps`']],
    ['# Steps\n1. **A**\n', ['there is no section `## Steps`']],
    [md(), ['there are no steps; a step looks like `1. **Title** - what to do` and is not indented']],
    [md('  1. **A**'), ['there are no steps; a step looks like `1. **Title** - what to do` and is not indented']],
    [md('1. **A**', '## Steps', '2. **B**'), ['5: there is a second section `## Steps`']],
    [md('2. **A**', '3. **B**'), ['4:1: this is step 2; the next step is number 1']],
    [md('1. **A**', '3. **B**', '4. **C**'), ['5:1: this is step 3; the next step is number 2']],
    [md('1. **A**', '1. **B**'), ['5:1: there already is a step 1; the next step is number 2']],
    [md('1. ** ** - x'), ['4:1: step 1 has no title']],
    [md('1. '), ['4:1: step 1 has no title']],
    [md('1. **A - x'), ['4:1: the title of step 1 does not end: its closing ** is missing']],
    [md('1. **A**', '   - kind: pause'), ['5:12: `kind` must be execute or checkpoint; got "pause"']],
    [md('1. **A**', '- requires_confirmation: yes'), ['5:26: `requires_confirmation` must be true or false; got "yes"']],
    [md('1. **A**', '- tool: shell'), ['5:3: `tool` is not a setting; did you mean `tools`?']],
    [
      md('1. **A**', '- Requires confirmation: true'),
      ['5:3: `Requires confirmation` is not a setting; did you mean `requires_confirmation`?'],
    ],
    [md('1. **A**', '- tools:'), ['5:9: `tools` must be tool names separated by commas; got ""']],
    [md('1. **A**', '- tools: a, b c'), ['5:10: `tools` must be tool names separated by commas; got "b c"']],
    [md('1. **A**', '- input: {"a": }'), ['5:10: `input` must be JSON on a single line']],
    [md('1. **A**', `- input: ${'['.repeat(9000)}${']'.repeat(9000)}`), ['5:10: `input` must not be nested more than 64 levels deep']],
    [
      md('1. **A**', `- output: ${'{"not":'.repeat(9000)}{}${'}'.repeat(9000)}`),
      ['5:11: `output` must not be nested more than 64 levels deep'],
    ],
    [md('1. **A**', '- output: 7'), ['5:11: `output` must be a JSON Schema: the schema must be an object, true or false']],
    [
      md('1. **A**', '- output: {"type": "text"}'),
      ['5:11: `output` must be a JSON Schema: type must be one of array, boolean, integer, null, number, object, string'],
    ],
    [md('1. **A**', '- kind: execute', '- kind: checkpoint'), ['6:9: `kind` is set twice in step 1']],
    [md('1. **A**', '```sh', '2. **B**'), ['5:1: this code block does not end']],
    [
      md('1. **A**', '- kind: x', '2. **B**', '- input: x'),
      ['5:9: `kind` must be execute or checkpoint; got "x"', '7:10: `input` must be JSON on a single line'],
    ],
  ])('reports problems with their position: %j', (text, expected) => {
    const found = parseSopMd(text).problems.map(({ line, column, message }) => [line, column, message].filter((part) => part !== undefined))
    expect(found.map((parts) => (parts.length > 1 ? `${parts.slice(0, -1).join(':')}: ${parts.at(-1)}` : parts[0]))).toEqual(expected)
  })

  test('limits the number of steps', () => {
    const steps = (count: number) => md(...Array.from({ length: count }, (_, index) => `${index + 1}. **A**`))
    expect(parseSopMd(steps(STEPS_MAX)).problems).toEqual([])
    expect(parseSopMd(steps(STEPS_MAX + 1)).problems).toEqual([{ line: STEPS_MAX + 4, message: `there are more than ${STEPS_MAX} steps` }])
  })

  test('never throws, and numbers the steps without gaps', () => {
    const pieces = fc.constantFrom(
      '## Steps',
      '# X',
      '1. **A**',
      '2. **B** - b',
      '3. ',
      '- tools: a',
      '- kind: checkpoint',
      '- x: y',
      '```',
      '~~~~',
      '',
      '  text',
      '- input: {}',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(pieces).map((lines) => ['## Steps', ...lines].join('\n')),
        ),
        (text) => {
          const { steps, lines, problems } = parseSopMd(text)
          expect(lines).toHaveLength(steps.length)
          expect(steps.map(({ number }) => number)).toEqual(steps.map((_, index) => index + 1))
          if (steps.length === 0 || steps.some(({ title }) => title === '')) expect(problems).not.toEqual([])
        },
      ),
      { numRuns: 500 },
    )
  })
})

test.each([
  ['blank lines', `## Steps\n1. **A** - b\n${'\n'.repeat(60_000)}x`],
  ['hashes in a heading', `# ${'# '.repeat(30_000)}x\n## Steps\n1. **A**`],
  ['spaces in a setting', `## Steps\n1. **A**\n- tools: a${' '.repeat(60_000)}x`],
])('reads many %s in linear time', (_name, text) => {
  const startedAtMs = processorMs()
  expect(parseSopMd(text).steps).toHaveLength(1)
  expect(processorMs() - startedAtMs).toBeLessThan(1000)
})
