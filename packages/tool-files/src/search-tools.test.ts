import type { ToolReport, Workspace } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { globSource } from './glob-pattern.ts'
import { searchTools } from './search-tools.ts'

const arrange = (files: Record<string, string | Uint8Array>, change: (workspace: Workspace) => Partial<Workspace> = () => ({})) => {
  const memory = memoryWorkspace(files)
  const host = testHost({ workspace: { ...memory, ...change(memory) } })
  const reports: ToolReport[] = []
  const abort = new AbortController()
  const run = async (name: 'grep' | 'glob', input: object) => {
    const tool = searchTools(host).find((one) => one.name === name) ?? expect.fail()
    const context = { ...toolContext(abort.signal, host.by), report: (given: ToolReport) => reports.push(given) }
    return tool.run(v.parse(tool.input, input), context)
  }
  return { run, host, reports, abort }
}

describe('grep', () => {
  test('names path and line, in the order of names, and leaves out files other than text', async () => {
    const { run } = arrange({
      'b.txt': 'no\r\nfoo 1\r\n',
      'a/c.md': 'foo 2',
      'a/d.bin': Uint8Array.of(0, 102, 111, 111),
      '.git/config': 'foo',
      'x/node_modules/y.js': 'foo',
    })
    expect(await run('grep', { pattern: 'fo+' })).toBe('b.txt:2: foo 1\na/c.md:1: foo 2\n[2 lines in 2 files]')
    expect(await run('grep', { pattern: 'foo', path: 'x/node_modules' })).toBe('x/node_modules/y.js:1: foo\n[1 lines in 1 files]')
    expect(await run('grep', { pattern: '(?i)FOO', glob: '*.md' })).toBe('a/c.md:1: foo 2\n[1 lines in 1 files]')
    expect(await run('grep', { pattern: '^foo$', path: 'a/' })).toBe('[No line matches]')
    expect(await run('grep', { pattern: 'foo', path: 'a/c.md' })).toBe('a/c.md:1: foo 2\n[1 lines in 1 files]')
  })

  test('leaves out what .gitignore files name, and finds it when asked', async () => {
    const { run } = arrange({
      '.gitignore': '# made\n*.log\n/dist/\nbuild\n!keep.log\ndocs/**/made\n[z-a]\n\\!odd \r\n',
      'a.log': 'foo',
      'keep.log': 'foo',
      'dist/a.js': 'foo',
      'src/dist/a.js': 'foo',
      'src/build/a.js': 'foo',
      'src/.gitignore': '!b.log\n/own.txt',
      'src/b.log': 'foo',
      'src/own.txt': 'foo',
      'src/deep/own.txt': 'foo',
      'docs/made/a.md': 'foo',
      'docs/x/y/made/a.md': 'foo',
      '!odd': 'foo',
    })
    const found = async (input: object) => (await run('grep', { pattern: 'foo', ...input })).split('\n').map((line) => line.split(':')[0])
    expect(await found({})).toEqual(['keep.log', 'src/b.log', 'src/deep/own.txt', 'src/dist/a.js', '[4 lines in 4 files]'])
    expect(await found({ ignored: true })).toHaveLength(12)
    expect(await found({ path: 'src' })).toEqual(['src/b.log', 'src/deep/own.txt', 'src/dist/a.js', '[3 lines in 3 files]'])
    expect(await found({ path: 'dist' })).toEqual(['dist/a.js', '[1 lines in 1 files]'])
    expect(await found({ path: 'a.log' })).toEqual(['a.log', '[1 lines in 1 files]'])
    expect(await run('glob', { pattern: '*.log' })).toBe('keep.log\nsrc/b.log')
    expect(await run('glob', { pattern: 'a.log' })).toBe(
      '[No file matches]\n[Files that .gitignore names were left out: ignored = true includes them]',
    )
  })

  test('ends a .gitignore that takes too long', async () => {
    let listed = () => {}
    const isListed = new Promise<void>((resolve) => {
      listed = resolve
    })
    const hostile = { '.gitignore': `${'*a'.repeat(12)}b`, [`${'a'.repeat(200)}.txt`]: 'foo' }
    const { run, host } = arrange(hostile, (memory) => ({
      async read(path, options) {
        if (path === '.gitignore') setImmediate(listed)
        return memory.read(path, options)
      },
    }))
    const search = run('grep', { pattern: 'foo' })
    await isListed
    await host.advance(10_000)
    expect(await search).toMatch(/^\[No line matches]\n\[The search ended after 10 s/)
  })

  test('shows the part of a long line around the match, with bytes that file_read takes', async () => {
    const line = `${'é'.repeat(5000)}needle${'y'.repeat(5000)}`
    const { run } = arrange({ 'a.json': `first\n${line}\n` })
    const [found = ''] = (await run('grep', { pattern: 'needle' })).split('\n')
    const [, first, last, text = ''] = /^a\.json:2: \[bytes (\d+)-(\d+)] (.*)$/.exec(found) ?? expect.fail(found)
    expect(text).toHaveLength(300)
    expect(text).toContain('éneedley')
    expect(
      Buffer.from(`first\n${line}`)
        .subarray(Number(first), Number(last) + 1)
        .toString(),
    ).toBe(text)
  })

  test('says that there are more, and which files are too large', async () => {
    const { run } = arrange({ 'a.txt': 'x\n'.repeat(5), 'large.log': new Uint8Array(10 * 1024 * 1024 + 1).fill(97) })
    expect(await run('grep', { pattern: 'x', limit: 2 })).toBe(
      'a.txt:1: x\na.txt:2: x\n[2 lines in 1 files]\n[There are more: narrow the search with path or glob]',
    )
    expect(await run('grep', { pattern: 'y' })).toBe('[No line matches]\n[Not searched, over 10 MiB: large.log]')
  })

  test('marks the text of others by the file that it comes from, only where it is in the answer', async () => {
    const { run, reports } = arrange({ 'attachments/ann/a.txt': 'pay now', 'notes.txt': 'pay later' })
    await run('grep', { pattern: 'later' })
    await run('grep', { pattern: 'pay' })
    await run('glob', { pattern: 'notes*' })
    await run('glob', { pattern: '*.txt' })
    expect(reports.map(({ untrusted }) => untrusted)).toEqual([
      undefined,
      'file attachments/ann/a.txt',
      undefined,
      'file attachments/ann/a.txt',
    ])
  })

  test('leaves out files that the caller may not open, and refuses a search of only one such file', async () => {
    const { run } = arrange({ 'a.txt': 'x', 'b.txt': 'x' }, (memory) => ({
      async read(path, options) {
        if (path === 'b.txt') throw new AppError('forbidden', "'b.txt' belongs to another person or conversation")
        return memory.read(path, options)
      },
    }))
    expect(await run('grep', { pattern: 'x' })).toBe('a.txt:1: x\n[1 lines in 1 files]')
    await expect(run('grep', { pattern: 'x', path: 'b.txt' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('refuses a pattern that is not an expression', async () => {
    await expect(arrange({ a: 'x' }).run('grep', { pattern: '(' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('Unterminated group'),
    })
    await expect(arrange({ a: 'x' }).run('glob', { pattern: '[z-a]' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('ends a pattern that takes too long, keeps what it has found, and goes on with the next search', async () => {
    let slow = () => {}
    const isSlow = new Promise<void>((resolve) => {
      slow = resolve
    })
    const { run, host } = arrange({ 'a.txt': 'aab', 'b.txt': `${'a'.repeat(60)}c` }, (memory) => ({
      async read(path, options) {
        if (path === 'b.txt') setImmediate(slow)
        return memory.read(path, options)
      },
    }))
    const hostile = run('grep', { pattern: '^(a+)+b?$' })
    await isSlow
    await host.advance(10_000)
    expect(await hostile).toMatch(/^a\.txt:1: aab\n\[1 lines in 1 files]\n\[The search ended after 10 s, at \.: narrow its path/)
    expect(await run('grep', { pattern: 'c$' })).toContain('b.txt:1: ')
  })

  test('an aborted search ends a pattern that takes for ever', async () => {
    const { run, abort } = arrange({ 'b.txt': `${'a'.repeat(60)}c` })
    const hostile = run('grep', { pattern: '^(a+)+$' })
    abort.abort()
    await expect(hostile).rejects.toMatchObject({ code: 'aborted' })
  })
})

describe('glob', () => {
  const files = Object.fromEntries(['a.md', 'src/b.ts', 'src/x/c.tsx', 'src/x/d+(1).js', '.env', 'src/.git/e.ts'].map((path) => [path, '']))

  test.each<[object, string[]]>([
    [{ pattern: '*.md' }, ['a.md']],
    [{ pattern: '*' }, ['.env', 'a.md', 'src/b.ts', 'src/x/c.tsx', 'src/x/d+(1).js']],
    [{ pattern: './src/*' }, ['src/b.ts']],
    [{ pattern: 'src/**' }, ['src/b.ts', 'src/x/c.tsx', 'src/x/d+(1).js']],
    [{ pattern: '**/*.{ts,tsx}' }, ['src/b.ts', 'src/x/c.tsx']],
    [{ pattern: '**/?.ts', path: 'src' }, ['src/b.ts']],
    [{ pattern: 'x/*', path: './src/' }, ['./src/x/c.tsx', './src/x/d+(1).js']],
    [{ pattern: 'd+(1).js' }, ['src/x/d+(1).js']],
    [{ pattern: '[!a-b].*' }, ['src/x/c.tsx']],
    [{ pattern: 'd{+(1).js' }, []],
  ])('%j finds %j', async (input, paths) => {
    const { run, reports } = arrange(files)
    const answer = await run('glob', input)
    expect(reports[0]?.data).toBe(paths.join('\n'))
    expect(answer).toBe(paths.length > 0 ? paths.join('\n') : '[No file matches]')
  })

  test('says when there are more than the limit', async () => {
    expect(await arrange(files).run('glob', { pattern: '*', limit: 2 })).toBe(
      '.env\na.md\n[Only the first 2 files are shown: narrow the search]',
    )
  })

  test('a pattern is always an expression of whole paths', () => {
    for (const glob of ['a|b', '(', ')', '}{', '{', 'a]', '[', '\\', '$^.', '**', '{a,{b,c}}']) {
      expect(() => new RegExp(globSource(glob))).not.toThrow()
    }
    expect(new RegExp(globSource('{a,{b,c}}.md')).test('x/c.md')).toBe(true)
    expect(new RegExp(globSource('a|b')).test('b')).toBe(false)
  })
})
