import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isAssignment, type Segment, splitCommand } from './split-command.ts'

const words = (command: string) => splitCommand(command).map((segment) => segment.map(({ text }) => text))

describe('splitCommand', () => {
  test.each<[command: string, segments: string[][]]>([
    ['ls', [['ls']]],
    ['  ls\t-l   a  ', [['ls', '-l', 'a']]],
    ['', []],
    [' ; ;\n', []],
    ['a;b\nc|d&&e||f', [['a'], ['b'], ['c'], ['d'], ['e'], ['f']]],
    ['a ; b', [['a'], ['b']]],
    [`echo 'a b' "c d" e\\ f`, [['echo', 'a b', 'c d', 'e f']]],
    [`echo 'a'"b"c\\d`, [['echo', 'abcd']]],
    [`echo '' ""`, [['echo', '', '']]],
    [`echo '$HOME' '\`id\`' '>' '&'`, [['echo', '$HOME', '`id`', '>', '&']]],
    ['echo \\$HOME "\\$HOME" "\\`" "\\"" "\\\\" "\\a"', [['echo', '$HOME', '$HOME', '`', '"', '\\', '\\a']]],
    [`echo "a;b" 'c|d' e\\;f`, [['echo', 'a;b', 'c|d', 'e;f']]],
    ['echo a # b; rm c\nls', [['echo', 'a'], ['ls']]],
    ["# it's\nls", [['ls']]],
    ['echo a#b', [['echo', 'a#b']]],
    ['echo \\# "#" a', [['echo', '#', '#', 'a']]],
    ['l\\\ns -\\\nl', [['ls', '-l']]],
    ['ls \\\n# comment\npwd', [['ls'], ['pwd']]],
    ['ls 2>/dev/null', [['ls']]],
    ['ls >/dev/null 2>&1 -l', [['ls', '-l']]],
    ['ls >> /dev/null 2>| "/dev/null" < /dev/null', [['ls']]],
    ['ls 2>&- 1>&2', [['ls']]],
    ['echo 2 >/dev/null', [['echo', '2']]],
    ['echo "2">/dev/null', [['echo', '2']]],
    ['A=1 ls', [['A=1', 'ls']]],
    ['echo a\u00a0b', [['echo', 'a\u00a0b']]],
  ])('splits %j as sh does', (command, segments) => {
    expect(words(command)).toEqual(segments)
  })

  test.each([
    'echo $HOME',
    'echo "$HOME"',
    'echo $(id)',
    'echo "$(id)"',
    'echo $((1+1))',
    "echo $'a'",
    'echo `id`',
    'echo "`id`"',
    'cat <(id)',
    'tee >(id)',
    'ls > file',
    'ls >> file',
    'ls >file',
    'ls 2>err',
    'ls >| file',
    'ls >& file',
    'ls >&3',
    'ls 9>&12',
    'ls 12>&1',
    'ls &> file',
    'ls &>/dev/null',
    'ls > /dev/null/../../etc/x',
    'ls > /dev/nullx',
    'ls > /dev/nul*',
    'ls >/dev/sda',
    'cat < file',
    'cat <> file',
    'cat << EOF\nx\nEOF',
    'cat <<< x',
    'cat <&3',
    'ls >',
    'ls > ;',
    'ls > # x',
    'sleep 1 &',
    'sleep 1 & ls',
    'a |& b',
    '(ls)',
    'ls() { rm x; }',
    'f () ls',
    "echo 'open",
    'echo "open',
    'echo "open\\"',
    'echo a\\',
    'echo a\0b',
    'echo a\rb',
    'echo a\u001bb',
  ])('refuses %j', (command) => {
    expect(() => splitCommand(command)).toThrow(expect.objectContaining({ code: 'forbidden' }))
  })

  test('finds the first unquoted pattern in a word', () => {
    const [segment = []] = splitCommand(`a*b '*' "?"c c\\*d 'x'[y] {z} plain`)
    expect(segment.map(({ text, patternAt }) => [text, patternAt])).toEqual([
      ['a*b', 1],
      ['*', -1],
      ['?c', -1],
      ['c*d', -1],
      ['x[y]', 1],
      ['{z}', 0],
      ['plain', -1],
    ])
  })

  test('splits any text or refuses it with an AppError', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (command) => {
        try {
          splitCommand(command)
        } catch (error) {
          expect(error).toBeInstanceOf(AppError)
        }
      }),
      { numRuns: effort(2000) },
    )
  })

  /** Separators of the log: characters that no command can contain. */
  const WORD_END = '\u0002'
  const CALL_END = '\u0001'

  /** Joins the arguments of a segment's program in the format of the log. */
  const argumentsOf = (segment: Segment): string => {
    const program = segment.findIndex((word) => !isAssignment(word))
    const args = program < 0 ? [] : segment.slice(program + 1)
    return args.map(({ text }) => text + WORD_END).join('')
  }

  interface Runs {
    readonly file: string
    readonly options: readonly string[]
    readonly here: string
    readonly bin: string
    readonly log: string
    readonly commands: readonly string[]
  }
  /** Runs each command in a shell and reads what it logged. A small process starts the shells: it forks much faster than a worker of the tests. */
  const RUN_EACH = `
    import { execFileSync } from 'node:child_process'
    import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
    const { file, options, here, bin, log, commands } = JSON.parse(readFileSync(0, 'utf8'))
    const results = commands.map((text) => {
      writeFileSync(log, '')
      try {
        execFileSync(file, [...options, '-c', text], { cwd: here, env: { PATH: bin }, stdio: 'ignore', timeout: 10_000 })
      } catch {
        // The exit code does not matter.
      }
      return { logged: readFileSync(log, 'utf8'), files: readdirSync(here) }
    })
    process.stdout.write(JSON.stringify(results))`
  const runEach = (runs: Runs): readonly { readonly logged: string; readonly files: readonly string[] }[] =>
    JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', RUN_EACH], { input: JSON.stringify(runs), encoding: 'utf8' }))

  /** The number of commands that each shell runs. */
  const RUNS = 120

  /** The shells of this machine that may serve as `sh`. */
  const SHELLS = [['/bin/sh'], ['/bin/bash', '--posix'], ['/bin/busybox', 'sh']].filter(([file = '']) => existsSync(file))

  test.each(SHELLS)('predicts each call that %s makes, and no file appears', (file = '', ...options) => {
    const folder = mkdtempSync(join(tmpdir(), 'split-'))
    const [bin, here, log] = [join(folder, 'bin'), join(folder, 'here'), join(folder, 'log')]
    mkdirSync(bin)
    mkdirSync(here)
    // The only program in the PATH writes its arguments to the log.
    const note = `out=; for word; do out="$out$word${WORD_END}"; done; printf '%s${CALL_END}' "$out" >> ${log}`
    writeFileSync(join(bin, 'p'), `#!/bin/sh\n${note}\n`)
    chmodSync(join(bin, 'p'), 0o755)
    const piece = fc.constantFrom(
      ...['p', 'a', '1', ' ', ' ', '\n', ';', '|', '||', '&&', '&', '#', "'", '"', '\\', '\\\n', '$', '`', '>', '<'],
      ...['/dev/null', '2>&1', '>/dev/null', '=', '-', 'ü', '\t', 'p ', ' p', "'p a'", '"p"', '; p b', "' '"],
    )
    const command = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => `p ${pieces.join('')}`)
    const commands = fc.sample(command, { numRuns: effort(6000), seed: 7 }).flatMap((text) => {
      try {
        return [{ text, possible: splitCommand(text).map(argumentsOf) }]
      } catch {
        return []
      }
    })
    const run = commands.slice(0, RUNS)
    const results = runEach({ file, options, here, bin, log, commands: run.map(({ text }) => text) })
    for (const [at, { text, possible }] of run.entries()) {
      const { logged, files } = results[at] ?? { logged: '', files: ['no result'] }
      for (const call of logged.split(CALL_END).slice(0, -1)) expect(possible, JSON.stringify(text)).toContain(call)
      expect(files, JSON.stringify(text)).toEqual([])
    }
    rmSync(folder, { recursive: true })
    expect(results).toHaveLength(RUNS)
  })
})
