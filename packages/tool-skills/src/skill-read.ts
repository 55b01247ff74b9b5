/** The tool `skill_read`. Its description lists the skills, so an agent without the tool does not see them. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { nearestName, readInside } from '@sluice/kit'
import { AppError, defineTool, printableLine, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Skill } from './load-skills.ts'
import type { SkillLibrary } from './skill-library.ts'

const FILE_BYTES_MAX = 262_144
/** The largest length of the list of skills in characters. */
export const LIST_CHARS_MAX = 16_000
const DESCRIPTION_CHARS_MAX = 1024
const FILES_LISTED = 100
const ENTRIES_READ_MAX = 5000

const INTRODUCTION = `Reads a skill: the operator's instructions for a kind of task. Read the skill that fits before you begin such a task, and follow it. Read its further files by path, and run its scripts with the shell tool by their full path. To propose a new or better skill, write it to skills/<name>/SKILL.md in the workspace and tell the operator to run 'sluice skills waiting'.`

/** Returns the tool with the present list of skills in its description. */
export const skillRead = (library: SkillLibrary): Tool =>
  defineTool({
    name: 'skill_read',
    description: library.skills.length === 0 ? INTRODUCTION : `${INTRODUCTION}\nSkills:\n${skillList(library.skills)}`,
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      skill: v.pipe(v.string(), v.maxLength(64), v.description('The name of the skill')),
      file: v.optional(
        v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description('The path of a file in the folder of the skill')),
        'SKILL.md',
      ),
    }),
    available: () => library.skills.length > 0,
    async run({ skill: name, file }) {
      const skill = skillNamed(library.skills, name)
      const read = await readInside(skill.folder, join(skill.folder, file), FILE_BYTES_MAX)
      if ('problem' in read) {
        if (read.isMissing)
          throw new AppError('not_found', `The skill '${name}' has no file '${file}'. Its files: ${await fileList(skill)}`)
        throw new AppError('invalid_request', `'${file}' of the skill '${name}' cannot be read: ${read.problem}`)
      }
      if (file !== 'SKILL.md') return read.text
      return `Folder of the skill: ${skill.folder}\nFiles: ${await fileList(skill)}\n\n${read.text}`
    },
  })

/** Throws `not_found` with the nearest name. */
export function skillNamed(skills: readonly Skill[], name: string): Skill {
  const names = skills.map((skill) => skill.name)
  const found = skills[names.indexOf(name)]
  if (found) return found
  const nearest = nearestName(name, names)
  throw new AppError('not_found', `There is no skill '${printableLine(name)}'${nearest === undefined ? '' : `; is it '${nearest}'?`}`)
}

/** Returns a line for each skill; further skills by name only, then by number, when the list would become too long. */
export function skillList(skills: readonly Skill[]): string {
  const lines: string[] = []
  let left = LIST_CHARS_MAX
  const add = (line: string): boolean => {
    const fits = left > line.length
    if (fits) {
      lines.push(line)
      left -= line.length + 1
    }
    return fits
  }
  let hidden = 0
  for (const { name, description } of skills) {
    const text = description.replace(/\s+/g, ' ').slice(0, DESCRIPTION_CHARS_MAX).toWellFormed()
    if (!add(`- ${name}: ${text}`) && !add(`- ${name}`)) hidden += 1
  }
  if (hidden > 0) lines.push(`and ${hidden} more`)
  return lines.join('\n')
}

/** Returns the files of the skill without `SKILL.md`, as one line. */
export async function fileList({ folder }: Skill): Promise<string> {
  const files: string[] = []
  let entriesLeft = ENTRIES_READ_MAX
  const visit = async (inner: string): Promise<void> => {
    const entries = await readdir(join(folder, inner), { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entriesLeft-- <= 0) return
      const path = inner === '' ? entry.name : `${inner}/${entry.name}`
      if (entry.name.startsWith('.') || path === 'SKILL.md') continue
      if (entry.isDirectory()) await visit(path)
      else files.push(path)
    }
  }
  await visit('')
  const more = files.length > FILES_LISTED ? ` and ${files.length - FILES_LISTED} more` : ''
  return files.length === 0 ? 'none besides SKILL.md' : `${files.slice(0, FILES_LISTED).join(', ')}${more}`
}
