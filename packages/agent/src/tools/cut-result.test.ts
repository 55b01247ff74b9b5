import { describe, expect, test } from 'vitest'
import { estimateTokens } from '../history/tokens.ts'
import { cutResult, resultTokens } from './cut-result.ts'

const lines = (count: number, text = 'some words') => Array.from({ length: count }, (_, at) => `${at + 1}: ${text}`).join('\n')

test.each([
  [8000, 2000],
  [32_000, 8000],
  [200_000, 16_000],
  [1_000_000, 16_000],
])('the limit in a window of %i tokens is %i', (window, tokens) => {
  expect(resultTokens(window)).toBe(tokens)
})

describe('a result', () => {
  test('within the limit stays as it is', () => {
    expect(cutResult(lines(2000), { tokens: 100_000 }, false)).toEqual({ output: lines(2000) })
  })

  test('keeps whole lines of its beginning and its end', () => {
    const { output, nextLine } = cutResult(lines(5000), { tokens: 3000 }, false)
    expect(estimateTokens(output)).toBeLessThan(3100)
    const shown = output.split('\n')
    expect(shown[0]).toBe('1: some words')
    expect(shown.at(-1)).toBe('5000: some words')
    const gap = shown.findIndex((line) => line.startsWith('[…'))
    expect(shown[gap - 1]).toBe(`${(nextLine ?? 0) - 1}: some words`)
    const last = Number(shown[gap + 1]?.split(':')[0])
    expect(shown[gap]).toBe(`[… ${(last - (nextLine ?? 0)).toLocaleString('en-US')} lines left out …]`)
  })

  test('has at most 2,000 lines, however short they are', () => {
    expect(cutResult('x\n'.repeat(10_000), { tokens: 16_000 }, false).output.split('\n').length).toBeLessThanOrEqual(2001)
  })

  test('that is read from a file keeps its beginning', () => {
    const { output, nextLine } = cutResult(lines(5000), { tokens: 3000 }, true)
    expect(output.split('\n').slice(-2)).toEqual([`${(nextLine ?? 0) - 1}: some words`, expect.stringContaining('lines left out')])
  })

  test.each([
    [false, '[a line of 600,000 characters, which is too long to be shown]'],
    [true, '1: [a line of 600,003 characters, which is too long to be shown]'],
  ])('names a line that is too long instead of showing it', (isRead, line) => {
    const text = `${isRead ? '1: ' : ''}${'x'.repeat(600_000)}\nend`
    expect(cutResult(text, { tokens: 8000 }, isRead)).toEqual({ output: `${line}\nend`, nextLine: 1 })
  })

  test('keeps max_tool_result_chars characters where that is set', () => {
    expect(cutResult('a'.repeat(1000), { tokens: 10, chars: 300 }, false).output).toMatch(
      /^a{200}\n\[… 700 characters left out …\]\na{100}$/,
    )
    expect(cutResult('a'.repeat(300), { tokens: 10, chars: 300 }, false)).toEqual({ output: 'a'.repeat(300) })
  })
})
