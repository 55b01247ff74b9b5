import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CommandContext, DeviceRecord, Parts } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolConformance, toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { skillsSection } from './config.ts'
import feature from './index.ts'
import { LIST_CHARS_MAX, skillList } from './skill-read.ts'

let root = ''
let parts: Parts | undefined

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'skills-'))
})
afterEach(async () => {
  await parts?.close?.()
  parts = undefined
  rmSync(root, { recursive: true, force: true })
})

const TEXT = (name: string, description = `Does ${name}`) => `---\nname: ${name}\ndescription: ${description}\n---\n\nDo ${name} well.\n`

function write(path: string, text: string): void {
  const file = join(root, path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
}

async function start({ registers = true }: { readonly registers?: boolean } = {}) {
  const audited: DeviceRecord[] = []
  const services = { audit: async (record: DeviceRecord) => void audited.push(record) }
  const host = testHost({ dataDir: root, services, workspace: { ...memoryWorkspace(), root: join(root, 'workspace') } })
  const built = feature.build(host, v.parse(skillsSection.schema, {}))
  parts = built
  if (registers) await built.register?.(new AbortController().signal)
  const tool = () => {
    const [found] = built.tools ?? []
    if (!found) throw new Error('the feature has no tool')
    return found
  }
  const read = async (input: object) => tool().run(v.parse(tool().input, input), toolContext())
  const run = async (name: string, ...args: string[]) => {
    const out: string[] = []
    const command = built.commands?.find((one) => one.name === `skills ${name}`)
    const context: Partial<CommandContext> = {
      args,
      cwd: root,
      json: false,
      by: 'cli:ada',
      print: (line) => void out.push(line),
      warn: (line) => void out.push(line),
      signal: new AbortController().signal,
    }
    const code = await command?.run(context as CommandContext)
    return { code, text: out.join('\n') }
  }
  return { host, audited, built, tool, read, run }
}

toolConformance({
  feature,
  examples: [{ tool: 'skill_read', input: { skill: 'report' } }],
  except: [
    {
      rule: 'each tool has an example, and the examples work',
      why: 'the suite does not register the feature, so it has no skills; the tests below read skills',
    },
  ],
})

describe('skills', () => {
  test('are listed to the model by name and description', async () => {
    write('skills/report/SKILL.md', TEXT('report', 'Writes reports'))
    write('skills/broken/SKILL.md', '# nothing')
    const { tool, host, built } = await start()
    expect(tool().description).toContain('- report: Writes reports')
    expect(tool().description).not.toContain('broken')
    expect(host.logs).toMatchObject([{ level: 'error', fields: { line: 1, file: expect.stringContaining('broken/SKILL.md') } }])
    expect(await built.check?.(new AbortController().signal)).toMatchObject([{ status: 'fail' }])
  })

  test('offer no tool while none is installed', async () => {
    expect((await start()).tool().available?.()).toBe(false)
  })

  test('are read on demand with their folder and files', async () => {
    write('skills/report/SKILL.md', TEXT('report'))
    write('skills/report/references/style.md', 'Short.')
    const { read, built } = await start()
    const text = await read({ skill: 'report' })
    expect(text).toContain(`Folder of the skill: ${join(root, 'skills/report')}`)
    expect(text).toContain('references/style.md')
    expect(text).toContain('Do report well.')
    expect(await read({ skill: 'report', file: 'references/style.md' })).toBe('Short.')
    expect(built.services?.skillFolders?.()).toEqual([join(root, 'skills/report')])
  })

  test.each([
    [{ skill: 'reprot' }, "is it 'report'?"],
    [{ skill: 'report', file: 'no.md' }, 'has no file'],
    [{ skill: 'report', file: '../../secret.key' }, 'outside of the folder'],
    [{ skill: 'report', file: 'link' }, 'outside of the folder'],
    [{ skill: 'report', file: '/etc/hostname' }, 'has no file'],
    [{ skill: 'report', file: 'data.bin' }, 'not UTF-8'],
  ])('refuse %j', async (input, message) => {
    write('secret.key', 'secret')
    write('skills/report/SKILL.md', TEXT('report'))
    symlinkSync(join(root, 'secret.key'), join(root, 'skills/report/link'))
    writeFileSync(join(root, 'skills/report/data.bin'), Buffer.from([0xff, 0xfe]))
    await expect((await start()).read(input)).rejects.toThrow(message)
  })

  test('in a workspace are not used, even through a link', async () => {
    write('workspace/evil/SKILL.md', TEXT('evil'))
    mkdirSync(join(root, 'skills'))
    symlinkSync(join(root, 'workspace/evil'), join(root, 'skills/evil'))
    const { tool, run } = await start()
    expect(tool().available?.()).toBe(false)
    expect((await run('check')).text).toContain('where the agent could change it')
  })

  test('with the same name are used once', async () => {
    write('skills/a/SKILL.md', TEXT('a'))
    write('skills/b/SKILL.md', TEXT('a'))
    const { run } = await start()
    const { code, text } = await run('check')
    expect(text).toContain("'a' is also the name of")
    expect(code).toBe(1)
  })

  test('make a new snapshot when the folder changes', async () => {
    write('skills/report/SKILL.md', TEXT('report'))
    const { host, tool } = await start()
    write('skills/report/SKILL.md', TEXT('report', 'Writes better reports'))
    const refreshes = async () => {
      await host.advance(250)
      return host.refreshes
    }
    await expect.poll(refreshes).toEqual(['the skills changed'])
    expect(tool().description).toContain('Writes better reports')
  })

  test('have a list of bounded length', () => {
    const skills = Array.from({ length: 500 }, (_, index) => ({ name: `skill-${index}`, description: 'x'.repeat(1024), folder: '/' }))
    const list = skillList(skills)
    expect(list.length).toBeLessThan(LIST_CHARS_MAX + 100)
    expect(list).toContain('- skill-0: xxx')
    expect(list).toMatch(/- skill-20\n/)
  })
})

describe('sluice skills', () => {
  test('a start finishes a replacement that a crash interrupted, whichever step it had reached', async () => {
    const present = () => readdirSync(join(root, 'skills')).sort()
    const text = (name: string) => readFileSync(join(root, 'skills', name, 'SKILL.md'), 'utf8')
    write('skills/.new-half/SKILL.md', TEXT('half', 'half-written'))
    write('skills/kept/SKILL.md', TEXT('kept', 'before'))
    write('skills/.new-kept/SKILL.md', TEXT('kept', 'half-written'))
    write('skills/.old-moved/SKILL.md', TEXT('moved', 'before'))
    write('skills/.new-moved/SKILL.md', TEXT('moved', 'after'))
    write('skills/done/SKILL.md', TEXT('done', 'after'))
    write('skills/.old-done/SKILL.md', TEXT('done', 'before'))
    write('skills/.old-lost/SKILL.md', TEXT('lost', 'before'))
    await start()
    expect(present()).toEqual(['done', 'kept', 'lost', 'moved'])
    expect(present().map((name) => /before|after/.exec(text(name))?.[0])).toEqual(['after', 'before', 'before', 'after'])
  })

  test('accepts exactly the content that was shown', async () => {
    write('workspace/skills/report/SKILL.md', TEXT('report'))
    write('workspace/skills/report/scripts/run.sh', 'echo hello')
    chmodSync(join(root, 'workspace/skills/report/scripts/run.sh'), 0o755)
    const { run, tool, host, audited } = await start()
    expect((await run('waiting')).text).toContain('report (new): Does report')
    const shown = (await run('waiting', 'report')).text
    expect(shown).toContain('echo hello')
    const hash = /accept report ([0-9a-f]{64})$/m.exec(shown)?.[1] ?? ''
    write('workspace/skills/report/scripts/run.sh', 'echo changed')
    await expect(run('accept', 'report', hash)).rejects.toMatchObject({ code: 'conflict' })
    expect(tool().available?.()).toBe(false)
    expect(audited).toEqual([])

    const again = /accept report ([0-9a-f]{64})$/m.exec((await run('waiting', 'report')).text)?.[1] ?? ''
    await expect(run('accept', 'report', again.slice(0, 16))).rejects.toThrow('is not a whole SHA-256 hash')
    await run('accept', 'report', again)
    const detail = { skill: 'report', folder: expect.stringContaining('report'), hash: again }
    expect(audited).toEqual([{ kind: 'skill_accepted', by: 'cli:ada', detail }])
    expect(tool().description).toContain('- report: Does report')
    expect(host.refreshes).toEqual(['the skills changed'])
    const script = join(root, 'skills/report/scripts/run.sh')
    expect(readFileSync(script, 'utf8')).toBe('echo changed')
    expect(statSync(script).mode & 0o777).toBe(0o700)
    expect((await run('waiting')).text).toBe('No skill waits for an operator.')

    write('workspace/skills/report/SKILL.md', TEXT('report', 'Other'))
    expect((await run('waiting')).text).toContain('report (changes an installed skill)')
  })

  test('refuses a proposal with a link', async () => {
    write('secret.key', 'secret')
    write('workspace/skills/report/SKILL.md', TEXT('report'))
    symlinkSync(join(root, 'secret.key'), join(root, 'workspace/skills/report/key'))
    const { run } = await start()
    expect((await run('waiting')).text).toContain('link')
    await expect(run('accept', 'report', '0'.repeat(16))).rejects.toThrow('is a link or a special file')
  })

  test('adds, replaces and removes skills without a daemon', async () => {
    write('given/SKILL.md', TEXT('report'))
    const { run, audited } = await start({ registers: false })
    expect((await run('add', 'given')).text).toContain('Added report')
    await expect(run('add', 'given')).rejects.toThrow('--replace')
    write('given/SKILL.md', TEXT('report', 'New'))
    await run('add', 'given', '--replace')
    expect((await run('list')).text).toBe('report: New')
    expect((await run('show', 'report')).text).toContain('--- SKILL.md')
    await run('remove', 'report')
    expect((await run('list')).text).toContain('There are no skills')
    await expect(run('remove', '..')).rejects.toMatchObject({ code: 'not_found' })
    const added = { skill: 'report', folder: join(root, 'given'), hash: expect.stringMatching(/^[0-9a-f]{64}$/) }
    expect(audited).toEqual([
      { kind: 'skill_added', by: 'cli:ada', detail: added },
      { kind: 'skill_added', by: 'cli:ada', detail: added },
      { kind: 'skill_removed', by: 'cli:ada', detail: { skill: 'report', folder: join(root, 'skills/report') } },
    ])
    await expect(run('accept', 'x')).rejects.toThrow('usage: sluice skills accept <name> <hash>')
  })
})

describe('the routes', () => {
  const arrange = async () => {
    const made = await start()
    const call = async (route: string, params: Record<string, string> = {}, body?: unknown) => {
      const found = made.built.routes?.find(({ method, path }) => `${method} ${path}` === route)
      return (await found?.handle({ params, body, by: 'device:o' } as never)) as Record<string, unknown>
    }
    return { ...made, call }
  }

  test('list the skills, with their files on request', async () => {
    write('skills/cook/SKILL.md', TEXT('cook'))
    write('skills/cook/recipes.txt', 'bread')
    write('skills/broken/SKILL.md', 'no front matter')
    const { call } = await arrange()
    expect(await call('GET /api/skills')).toMatchObject({
      folder: join(root, 'skills'),
      skills: [{ name: 'cook', description: 'Does cook', license: null }],
      problems: [{ severity: 'error', file: expect.stringContaining('broken') }],
      waiting: [],
    })
    expect(await call('GET /api/skills/:name', { name: 'cook' })).toMatchObject({
      name: 'cook',
      files: [{ path: 'SKILL.md' }, { path: 'recipes.txt', text: 'bread', bytes: 5, executable: false }],
    })
    await expect(call('GET /api/skills/:name', { name: '../cook' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('accept exactly the proposal that was read', async () => {
    write('workspace/skills/bake/SKILL.md', TEXT('bake'))
    const { call, audited } = await arrange()
    const { waiting } = (await call('GET /api/skills')) as { waiting: { hash: string; files: { text: string }[] }[] }
    expect(waiting).toMatchObject([{ name: 'bake', replaces: false, files: [{ text: TEXT('bake') }] }])
    const hash = waiting[0]?.hash
    write('workspace/skills/bake/SKILL.md', TEXT('bake', 'Does something else'))
    const accept = (of: unknown) => call('POST /api/skills/waiting/:name/accept', { name: 'bake' }, { hash: of })
    await expect(accept(hash)).rejects.toMatchObject({ code: 'conflict' })
    expect(audited).toEqual([])
    write('workspace/skills/bake/SKILL.md', TEXT('bake'))
    expect(await accept(hash)).toEqual({ accepted: 'bake', folder: join(root, 'skills/bake') })
    expect(audited).toMatchObject([{ kind: 'skill_accepted', by: 'device:o', detail: { skill: 'bake', hash } }])
    expect(await call('GET /api/skills')).toMatchObject({ skills: [{ name: 'bake' }], waiting: [] })
  })
})
