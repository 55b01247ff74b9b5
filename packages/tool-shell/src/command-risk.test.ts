import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandRisk } from './command-risk.ts'

const ROOT = '/home/somebody/workspace'

test.each([
  'ls',
  'ls -la src',
  'cat a.txt | grep -n b | head -n 3',
  'find . -name "*.ts" -type f',
  'wc -l a; pwd && date || echo no',
  'date -u +%F',
  `cat ${ROOT}/a`,
  "grep -r 'a b' src 2>/dev/null",
])('%j only looks', (command) => {
  expect(commandRisk(command, ROOT)).toBe('read')
})

test.each([
  '',
  'rm a',
  'ls; rm a',
  'ls | sh',
  'ls $HOME',
  'ls > a',
  'cat /etc/passwd',
  'cat ../secret',
  'cat src/*.ts',
  'grep --deref root ldir',
  'wc --fi=x',
  'cat a/../../secret',
  'cat ~/.ssh/id',
  'cat ~',
  'grep -f/etc/passwd x',
  'grep --file=/etc/passwd x',
  'grep -R x .',
  'grep -rR x .',
  'grep --dereference-recursive x .',
  'grep -3R x .',
  'grep -3flist x',
  'ls -LR',
  'ls -1L .',
  'ls --dereference -R',
  'find / -name x',
  'find -L .',
  'find . -delete',
  'find . -exec rm x',
  'find . -fprint x',
  'date -s 2020-01-01',
  'date 010100002020',
  'date --set=2020-01-01',
  'date -us 2020-01-01',
  'wc --files0-from=list',
  './ls',
  '/bin/ls',
  "l's'",
  'X=1 ls',
  'git status',
  'sort -o a b',
  'tail a & ls',
  'constructor',
  'toString',
  'ls*',
])('%j may do more', (command) => {
  expect(commandRisk(command, ROOT)).toBe('execute')
})

test('a link out of the workspace is no plain look, at whatever place in the path', () => {
  const root = mkdtempSync(join(tmpdir(), 'sluice-risk-'))
  try {
    mkdirSync(join(root, 'dir'))
    writeFileSync(join(root, 'plain'), 'x')
    symlinkSync('/etc/passwd', join(root, 'link'))
    symlinkSync('/etc', join(root, 'dir', 'etc'))
    linkSync(join(root, 'plain'), join(root, 'hard'))
    for (const command of [
      'cat link',
      'cat dir/etc/passwd',
      'ls -l dir/etc/',
      'head -n1 ./dir/etc/passwd',
      'cat hard',
      'grep -r x dir/etc',
    ])
      expect(commandRisk(command, root), command).toBe('execute')
    for (const command of ['cat missing', 'ls dir', 'ls']) expect(commandRisk(command, root), command).toBe('read')
  } finally {
    rmSync(root, { recursive: true })
  }
})
