import { expect, test } from 'vitest'
import { ChatLines, costOf } from './chat-lines.ts'
import { createOutput } from './output.ts'

const arrange = ({ isTerminal = true, env = { NO_COLOR: '1' } }: { isTerminal?: boolean; env?: Record<string, string> } = {}) => {
  const written: string[] = []
  const stdout = { isTTY: isTerminal, columns: 80, write: (data: string | Uint8Array) => written.push(String(data)) }
  const out = createOutput({ stdout, stderr: { write: (text) => written.push(text) } }, env)
  return { lines: new ChatLines(out, isTerminal), shown: () => written.join('') }
}

test('a line begins below the words of an answer', () => {
  const { lines, shown } = arrange()
  lines.print('[file_list]')
  lines.write('Two ')
  lines.write('words.')
  lines.write('')
  lines.print('[shell]')
  lines.write('A line.\n')
  lines.print('done')
  expect(shown()).toBe('[file_list]\nTwo words.\n[shell]\nA line.\ndone\n')
})

test('shows the Markdown of an answer block by block', () => {
  const { lines, shown } = arrange({ env: {} })
  for (const piece of ['# Ti', 'tle\n\nSome **bo', 'ld** words\n', '\n- a\n- b']) lines.write(piece)
  expect(shown()).toBe('\u001b[1mTitle\u001b[0m\n\nSome \u001b[1mbold\u001b[0m words\n')
  lines.print('done')
  expect(shown()).toMatch(/words\n\n• a\n• b\ndone\n$/)
})

test('shows no codes with NO_COLOR, and the Markdown itself where there is no terminal', () => {
  for (const [isTerminal, text] of [
    [true, 'bold words\ndone\n'],
    [false, '**bold** words\ndone\n'],
  ] as const) {
    const { lines, shown } = arrange({ isTerminal })
    lines.write('**bold** words')
    lines.print('done')
    expect(shown()).toBe(text)
  }
})

test('the cost of a turn names its model, and the money where it costs some', () => {
  const done = { model: 'm', input_tokens: 10, output_tokens: 2, cost_usd: 0 }
  const texts = [done, { ...done, cost_usd: 0.01 }, { ...done, model: '' }].map((one) => costOf(one as Parameters<typeof costOf>[0]))
  expect(texts).toEqual(['m, 12 tokens', 'm, 12 tokens, $0.0100', '12 tokens'])
})
