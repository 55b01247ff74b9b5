import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { commandRisk, readsFilesOfOthers } from './command-risk.ts'

const ROOT = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-look-')))
mkdirSync(join(ROOT, 'src'))
for (const name of ['a', 'a.txt', 'b', 'x', 'list']) writeFileSync(join(ROOT, name), 'x')
afterAll(() => rmSync(ROOT, { recursive: true }))

describe('commandRisk', () => {
  test.each([
    'ls',
    'ls -la src',
    'ls -lT 4 --color=auto --sort=size --width 80 src',
    'cat a.txt | grep -n b | head -n 3',
    'cat -- a.txt -',
    'find . -name "*.ts" -type f',
    'find -P src -maxdepth 2 \\( -name a -o -size +1k \\) -print0',
    'wc -l a; pwd && date || echo no',
    'date -u +%F',
    'date +"%F %T"',
    `cat '${ROOT}/a'`,
    "grep -r 'a b' src 2>/dev/null",
    'grep -e missing -A3 --max-count=2 a',
    'grep /etc/passwd a.txt',
    "cut -d / -f 1 a | tr 'a/b' c",
    'echo /etc/passwd and more; basename /etc/passwd; dirname ../x',
    'head -20 a; tail -c +5 a',
    'stat -c "%n %s" a',
  ])('rates %j as read', (command) => {
    expect(commandRisk(command, { root: ROOT })).toBe('read')
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
    'grep missing missing.txt',
    'cat missing',
    'ls -l src/missing',
    'grep -x -f list a',
    'grep --fil=list x',
    'grep -d recurse x .',
    'tail -f a',
    'tail --follow a',
    'date -r a',
    'date --file=a',
    'date -d tomorrow',
    'ls -H src',
    'ls --hyperlink a',
    'ls ~root',
    'echo ~root',
    'stat --dereference a',
    'stat -L a',
    'pwd x',
    'find -H . -name a',
    'find . -newer a -unknown',
    'find . -exec rm x ;',
    'find . -fls x',
    'find . -name a -delete',
    'find -files0-from a',
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
  ])('rates %j as execute', (command) => {
    expect(commandRisk(command, { root: ROOT })).toBe('execute')
  })

  test('rates a path with a link in any part of it as execute', () => {
    const root = mkdtempSync(join(tmpdir(), 'sluice-risk-'))
    try {
      mkdirSync(join(root, 'dir'))
      writeFileSync(join(root, 'plain'), 'x')
      writeFileSync(join(root, 'plain2'), 'x')
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
        expect(commandRisk(command, { root }), command).toBe('execute')
      for (const command of ['cat plain2', 'ls dir', 'ls']) expect(commandRisk(command, { root }), command).toBe('read')
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  test('checks the path again on each call', () => {
    const root = mkdtempSync(join(tmpdir(), 'sluice-risk-'))
    try {
      const file = join(root, 'manual.txt')
      expect(commandRisk('cat manual.txt', { root })).toBe('execute')
      writeFileSync(file, 'x')
      expect(commandRisk('cat manual.txt', { root })).toBe('read')
      unlinkSync(file)
      symlinkSync('/etc/passwd', file)
      expect(commandRisk('cat manual.txt', { root })).toBe('execute')
      unlinkSync(file)
      symlinkSync('nowhere', file)
      expect(commandRisk('cat manual.txt', { root })).toBe('execute')
    } finally {
      rmSync(root, { recursive: true })
    }
  })
})

describe('readsFilesOfOthers', () => {
  const withFiles = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-others-')))
  mkdirSync(join(withFiles, 'src'))
  mkdirSync(join(withFiles, 'attachments/device_3aa'), { recursive: true })
  for (const name of ['a.txt', 'src/b.txt', 'attachments/device_3aa/x.txt']) writeFileSync(join(withFiles, name), 'x')
  symlinkSync('attachments/device_3aa', join(withFiles, 'inbox'))
  linkSync(join(withFiles, 'attachments/device_3aa/x.txt'), join(withFiles, 'same.txt'))
  afterAll(() => rmSync(withFiles, { recursive: true }))

  test.each([
    'grep -r invoice .',
    'grep -r invoice',
    'grep -ri invoice ./',
    `grep -r invoice ${withFiles}`,
    `grep -r invoice ${withFiles}/src/..`,
    'cat src/b.txt; grep -r invoice .',
    'cat inbox/x.txt',
    'cat same.txt',
    'cat a*/*/x.txt',
    'cat att""achments/device_3aa/x.txt',
    'ls -R',
    'ls',
    'find',
    'find . -name "*.txt"',
    'find -name "*.txt"',
    'python3 read.py',
    'python3 -c "print(open(chr(97)))"',
    'git grep invoice',
    'git show HEAD:a.txt',
    'tar cf - .',
    'unzip a.zip',
    'cd src && cat ../a.txt',
    'sort a.txt',
    'cat ../workspace/a.txt',
    'cat missing',
    'cat "unfinished',
  ])('%j may read them', (command) => {
    expect(readsFilesOfOthers(command, { root: withFiles })).toBe(true)
    expect(readsFilesOfOthers(command, { root: ROOT })).toBe(false)
  })

  test.each(['cat a.txt', 'grep -r x src', 'ls src', 'cat a.txt | grep x | wc -l', 'pwd', 'echo hello', 'date', `cat ${withFiles}/a.txt`])(
    '%j cannot read them',
    (command) => {
      expect(readsFilesOfOthers(command, { root: withFiles })).toBe(false)
    },
  )
})
