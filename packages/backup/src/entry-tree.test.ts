import { describe, expect, test } from 'vitest'
import { EntryTree, type EntryType } from './entry-tree.ts'

type Entry = readonly [path: string, type: EntryType, target?: string]

/** Returns the problem of the first entry that cannot be unpacked, or the links that lead out. */
function judge(entries: readonly Entry[], foldsCase = false): string | readonly string[] {
  const tree = new EntryTree(foldsCase)
  for (const entry of entries) {
    const problem = tree.add(...entry)
    if (problem !== undefined) return problem
  }
  return tree.outsideLinks()
}

describe('an entry is refused', () => {
  test.each<[string, readonly Entry[], string]>([
    [
      'below a link',
      [
        ['a', 'symlink', 'b'],
        ['a/x', 'file'],
      ],
      'a/x is below a, which is a link',
    ],
    [
      'below a link that is below a folder',
      [
        ['w/a', 'symlink', 'b'],
        ['w/a/b/c', 'symlink', 'd'],
      ],
      'which is a link',
    ],
    [
      'below a link of another case',
      [
        ['A', 'symlink', 'b'],
        ['a/x', 'file'],
      ],
      'differ only in case',
    ],
    [
      'below a file',
      [
        ['a', 'file'],
        ['a/x', 'file'],
      ],
      'a/x is below a, which is a file',
    ],
    [
      'as a link in the place of a folder',
      [
        ['a/x', 'file'],
        ['a', 'symlink', 'b'],
      ],
      'two entries of the name a',
    ],
    [
      'as a link in the place of a folder of another case',
      [
        ['a/x', 'file'],
        ['A', 'symlink', 'b'],
      ],
      'differ only in case',
    ],
    [
      'when its name is there',
      [
        ['w/a', 'file'],
        ['w/a', 'file'],
      ],
      'two entries of the name w/a',
    ],
    [
      'when its folder is there',
      [
        ['w', 'directory'],
        ['w', 'directory'],
      ],
      'two entries of the name w',
    ],
    [
      'when its name is there as a link',
      [
        ['w/a', 'symlink', 'b'],
        ['w/a', 'file'],
      ],
      'two entries of the name w/a',
    ],
    [
      'when its link is there in another case',
      [
        ['w/a', 'symlink', 'b'],
        ['w/A', 'file'],
      ],
      'differ only in case',
    ],
    [
      'as the database in another case',
      [
        ['sluice.db', 'file'],
        ['Sluice.db', 'file'],
      ],
      'differ only in case',
    ],
    [
      'as a name that Unicode writes in two ways',
      [
        ['caf\u00e9', 'file'],
        ['cafe\u0301', 'file'],
      ],
      'differ only in case',
    ],
    ['as a database that is a link', [['sluice.db-wal', 'symlink', 'b']], 'sluice.db-wal is a link'],
    ['as a configuration that is a link', [['Config.toml', 'symlink', 'b']], 'Config.toml is a link'],
    ['as a link without a target', [['a', 'symlink', '']], 'no target'],
    ['as the journal of a restore', [['restore.json', 'file']], 'belongs to one machine'],
    ['as a lock in another case', [['Daemon.lock', 'file']], 'belongs to one machine'],
    ['in the folder of another restore', [['before-restore-1/a', 'file']], 'belongs to one machine'],
  ])('%s', (_, entries, problem) => expect(judge(entries)).toContain(problem))

  test.each(['../a', '/a', 'a/../b', 'a/./b', 'a//b', 'a\\b', '', '..', 'a\0b'])('with the path %j', (path) =>
    expect(judge([[path, 'file']])).toContain('an entry with the path'),
  )

  test('when names differ in case, and the system does not keep them apart', () => {
    const twins: readonly Entry[] = [
      ['w/Makefile', 'file'],
      ['w/makefile', 'file'],
      ['w/A/x', 'file'],
      ['w/a/x', 'file'],
    ]
    expect([judge(twins), judge(twins, true)]).toEqual([[], expect.stringContaining('differ only in case')])
  })
})

describe('a link', () => {
  test.each<[string, string]>([
    ['w/a', '/etc'],
    ['w/a', '../..'],
    ['a', '..'],
    ['w/x/a', '../../../data/w'],
    ['w/a', 'C:\\Windows'],
    ['w/a', '..\\..\\x'],
    ['w/a', '../backups/x'],
    ['w/a', 'up/../x/../../../etc'],
  ])('%s -> %s leads out', (path, target) => expect(judge([[path, 'symlink', target]])).toEqual([path]))

  test('leads out through another link, whatever the order of the two', () => {
    const up: Entry = ['w/x/y/up', 'symlink', '../../..']
    const out: Entry = ['w/out', 'symlink', 'x/y/up/../etc']
    expect([judge([up, out]), judge([out, up])]).toEqual([['w/out'], ['w/out']])
  })

  test.each<[string, string]>([
    ['w/a', 'b'],
    ['w/a', '../secret'],
    ['w/x/y/a', '../../..'],
    ['w/a', './b/../c'],
    ['w/a', 'a'],
  ])('%s -> %s stays in the data directory', (path, target) => expect(judge([[path, 'symlink', target]])).toEqual([]))

  test('may follow folders that their entries named first', () =>
    expect(
      judge([
        ['w/b/x', 'file'],
        ['w/b', 'directory'],
        ['w/a', 'symlink', 'b'],
      ]),
    ).toEqual([]))
})
