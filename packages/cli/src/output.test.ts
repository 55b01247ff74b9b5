import { describe, expect, test } from 'vitest'
import { createOutput } from './output.ts'

const HOSTILE = '\u001b]0;owned\u0007\u009b31m\u202egnp.exe\u007f'
const SHOWN = '\\u001b]0;owned\\u0007\\u009b31m\\u202egnp.exe\\u007f'

function outputOn({ isTTY = false, columns = 80, env = {} }: { isTTY?: boolean; columns?: number; env?: Record<string, string> } = {}) {
  const written = { out: '', err: '' }
  const stdout = { isTTY, columns, write: (data: string | Uint8Array) => (written.out += Buffer.from(data).toString('utf8')) }
  const out = createOutput({ stdout, stderr: { write: (text: string) => (written.err += text) } }, env)
  return { out, written }
}

describe.each([true, false])('createOutput, on a terminal: %s', (isTTY) => {
  test('escapes control characters in every kind of output', () => {
    const { out, written } = outputOn({ isTTY, env: { NO_COLOR: '1' } })
    out.print(HOSTILE)
    out.write(HOSTILE)
    out.warn(HOSTILE)
    out.print(out.style('red', HOSTILE))
    out.table([HOSTILE], [[HOSTILE]])
    out.json({ [HOSTILE]: HOSTILE })
    expect(written.out + written.err).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
    expect(written.out).toContain(SHOWN)
    expect(written.err).toBe(`${SHOWN}\n`)
  })

  test('prints JSON that parses to the original text', () => {
    const { out, written } = outputOn({ isTTY })
    out.json({ text: HOSTILE })
    expect(JSON.parse(written.out)).toEqual({ text: HOSTILE })
  })
})

test('a styled text cannot end its style or begin another', () => {
  const { out, written } = outputOn({ isTTY: true })
  out.print(`${out.style('red', 'fail')} plain ${out.style('dim', 'a\u001b[0mb')}`)
  expect(written.out).toBe('\u001b[31mfail\u001b[0m plain \u001b[2ma\\u001b[0mb\u001b[0m\n')
})

test('bytes are written unchanged, except to a terminal', () => {
  const bytes = Buffer.from('\u001b[2Jraw')
  const [file, terminal] = [outputOn(), outputOn({ isTTY: true })]
  file.out.write(bytes)
  terminal.out.write(bytes)
  expect(file.written.out).toBe('\u001b[2Jraw')
  expect(terminal.written.out).toBe('\\u001b[2Jraw')
})

describe('a table', () => {
  const rows = [
    ['1', 'a short one', 'a long text that does not fit'],
    ['2', '中文', 'x'],
  ]

  test('is not wrapped without a terminal', () => {
    const { out, written } = outputOn()
    out.table(['id', 'name', 'text'], rows)
    expect(written.out.split('\n')).toEqual([
      'id  name         text',
      '1   a short one  a long text that does not fit',
      '2   中文         x',
      '',
    ])
  })

  const ID = 'c4483cab-e7f3-4945-a6b2-25f0a8a1c001'
  const OTHER = '9e1fbe8a-11f3-4a45-86b2-25f0a8a1c002'
  const DEVICES = [
    [ID, 'command line', '2026-11-29T21:58:38.123Z', '2026-11-29T22:01:00.000Z', 'never'],
    [OTHER, 'dashboard, Chrome on Linux', '2026-11-29T21:58:39.123Z', 'never', 'never'],
  ]
  const HEADINGS = ['id', 'name', 'paired', 'last seen', 'expires']

  test('shortens times and unique ids before it wraps', () => {
    const { out, written } = outputOn({ isTTY: true, env: { NO_COLOR: '1' } })
    out.table(HEADINGS, DEVICES)
    expect(written.out.split('\n')).toEqual([
      'id        name                 paired               last seen            expires',
      'c4483cab  command line         2026-11-29           2026-11-29           never',
      '                               21:58:38Z            22:01:00Z',
      '9e1fbe8a  dashboard, Chrome    2026-11-29           never                never',
      '          on Linux             21:58:39Z',
      '',
    ])
  })

  test('never breaks a cell without spaces: rows that cannot fit become blocks', () => {
    const { out, written } = outputOn({ isTTY: true, columns: 40, env: { NO_COLOR: '1' } })
    out.table(
      ['id', 'name', 'from'],
      [
        ['channel:webhook/default/ada/ada', 'Ada', '2001:db8::1'],
        ['device:c4483cab-e7f3-4945-a6b2-25f0a8a1c001/main', '', '127.0.0.1'],
      ],
    )
    expect(written.out.split('\n')).toEqual([
      'id    channel:webhook/default/ada/ada',
      'name  Ada',
      'from  2001:db8::1',
      '',
      'id    device:c4483cab-e7f3-4945-a6b2-25f0a8a1c001/main',
      'from  127.0.0.1',
      '',
    ])
  })

  test('shows ids whole where they have room or their beginnings are the same', () => {
    const wide = outputOn({ isTTY: true, columns: 200, env: { NO_COLOR: '1' } })
    wide.out.table(HEADINGS, DEVICES)
    expect(wide.written.out).toContain(ID)
    const { out, written } = outputOn({ isTTY: true, columns: 50, env: { NO_COLOR: '1' } })
    out.table(
      ['id', 'text'],
      [
        [ID, 'one that is rather long'],
        [ID.replace(/1$/, '9'), 'another one of that length'],
      ],
    )
    expect(written.out).toContain(ID)
  })

  test('wraps its widest columns to fit the terminal', () => {
    const { out, written } = outputOn({ isTTY: true, columns: 32, env: { NO_COLOR: '1' } })
    out.table(['id', 'name', 'text'], rows)
    expect(written.out.split('\n')).toEqual([
      'id  name         text',
      '1   a short one  a long text',
      '                 that does not',
      '                 fit',
      '2   中文         x',
      '',
    ])
  })
})
