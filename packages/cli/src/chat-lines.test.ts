import { expect, test } from 'vitest'
import { ChatLines, costOf } from './chat-lines.ts'
import { createOutput } from './output.ts'

const arrange = () => {
  const written: string[] = []
  const stdout = { isTTY: true, columns: 80, write: (data: string | Uint8Array) => written.push(String(data)) }
  const out = createOutput({ stdout, stderr: { write: (text) => written.push(text) } }, { NO_COLOR: '1' })
  return { lines: new ChatLines(out), shown: () => written.join('') }
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

test('the cost of a turn names its model, and the money where it costs some', () => {
  const done = { model: 'm', input_tokens: 10, output_tokens: 2, cost_usd: 0 }
  const texts = [done, { ...done, cost_usd: 0.01 }, { ...done, model: '' }].map((one) => costOf(one as Parameters<typeof costOf>[0]))
  expect(texts).toEqual(['m, 12 tokens', 'm, 12 tokens, $0.0100', '12 tokens'])
})
