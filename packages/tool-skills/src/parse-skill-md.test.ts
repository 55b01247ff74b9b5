import { describe, expect, test } from 'vitest'
import { parseSkillMd } from './parse-skill-md.ts'

const file = (...fields: string[]): string => ['---', ...fields, '---', '', '# Title', 'Instructions'].join('\n')

describe('front matter of a skill', () => {
  test('is read with every field of the format', () => {
    const text = file(
      'name: weekly-report',
      'description: >-',
      '  Writes the weekly report.',
      '  Use it when somebody asks for it.',
      'license: MIT',
      'compatibility: Needs python3',
      'metadata:',
      '  version: "1.0"',
      'allowed-tools: Bash(git:*) Read',
    )
    expect(parseSkillMd(text, 'weekly-report')).toEqual({
      skill: {
        name: 'weekly-report',
        description: 'Writes the weekly report. Use it when somebody asks for it.',
        license: 'MIT',
        compatibility: 'Needs python3',
        allowedTools: 'Bash(git:*) Read',
      },
      problems: [],
    })
  })

  test('may begin with a byte order mark and have lines that end with CRLF', () => {
    const text = `\uFEFF${file('name: a', 'description: b').replaceAll('\n', '\r\n')}`
    expect(parseSkillMd(text, 'a').skill).toEqual({ name: 'a', description: 'b' })
  })

  test('may list the allowed tools', () => {
    expect(parseSkillMd(file('name: a', 'description: b', 'allowed-tools: [Read, Grep]'), 'a').skill?.allowedTools).toBe('Read Grep')
  })

  test('may have a colon in a plain text, with a warning', () => {
    const { skill, problems } = parseSkillMd(file('name: a', 'description: Use when: the user asks "why"'), 'a')
    expect(skill?.description).toBe('Use when: the user asks "why"')
    expect(problems).toEqual([{ line: 3, message: expect.stringContaining('quotation marks'), severity: 'warning' }])
  })

  test('is used under another name than its folder, with a warning', () => {
    const { skill, problems } = parseSkillMd(file('name: a', 'description: b'), 'other')
    expect(skill?.name).toBe('a')
    expect(problems).toEqual([{ line: 2, message: "name is 'a', but the folder is 'other'", severity: 'warning' }])
  })

  test.each([
    ['a', ['description: b'], 'a'],
    ['my_skill', ['name: my_skill', 'description: b'], 'my_skill'],
    ['a', ['name: a', 'description: b', 'argument-hint: [path] [--draft]'], 'a'],
    ['a', ['name: a', 'description: b', 'disable-model-invocation: true', 'allowed-tools: Bash(git add:*), Read'], 'a'],
  ])('is used as other agents use it: %s %j', (folder, fields, name) => {
    expect(parseSkillMd(file(...fields), folder).skill?.name).toBe(name)
  })

  test.each([
    ['# No front matter', 1, 'must begin with front matter'],
    ['---\nname: a\ndescription: b\n', 1, 'must begin with front matter'],
    [file('name: a'), 1, 'description is missing'],
    [file('description: b', 'name: My Skill'), 3, 'name must consist of lower-case letters'],
    [file('description: b', 'name: ../x'), 3, 'name must consist of lower-case letters'],
    [file('description: b', `name: ${'a'.repeat(65)}`), 3, 'at most 64 characters'],
    [file('name: a', 'description: ""'), 3, 'description must not be empty'],
    [file('name: a', 'description: [b]'), 3, 'description must be a string'],
    [file('name: a', 'description: "b'), 3, ''],
    [file('- name'), 1, 'is missing'],
  ])('is refused with the line of the problem: %j', (text, line, message) => {
    const { skill, problems } = parseSkillMd(text, 'a')
    expect(skill).toBeUndefined()
    expect(problems[0]).toMatchObject({ line, severity: 'error', message: expect.stringContaining(message) })
  })

  test('cannot grow by aliases', () => {
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]', ...'bcdefgh'.split('').map((key, i) => `${key}: &${key} [${`*${'abcdefg'[i]},`.repeat(9)}]`)]
    expect(parseSkillMd(file('name: a', 'description: b', ...bomb), 'a').skill).toBeUndefined()
  })
})
