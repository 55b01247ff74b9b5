/** Reads the skills of a folder. A broken skill is reported, and the others are used. */
import { readdir, realpath } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { mapConcurrently, readInside } from '@sluice/kit'
import type { FrontMatter, SkillProblem } from './parse-skill-md.ts'

export const SKILL_FILE = 'SKILL.md'
export const SKILLS_MAX = 500
export const SKILL_FILE_BYTES_MAX = 262_144
const READS_AT_ONCE = 8

export interface Skill extends FrontMatter {
  /** The absolute path of its folder, without links. */
  readonly folder: string
}

export interface LoadedSkills {
  /** Sorted by name. */
  readonly skills: readonly Skill[]
  readonly problems: readonly SkillProblem[]
}

/** `workspaces` are the folders that agents can write to: a skill that is inside one of them is an error. Never rejects. */
export async function loadSkills(folder: string, workspaces: readonly string[]): Promise<LoadedSkills> {
  const listed = await listFolders(folder)
  if ('problem' in listed)
    return { skills: [], problems: listed.problem ? [{ file: folder, message: listed.problem, severity: 'error' }] : [] }
  const writable = await Promise.all(workspaces.map((path) => realpath(path).catch(() => path)))
  const read = await mapConcurrently(listed.names.slice(0, SKILLS_MAX), READS_AT_ONCE, (name) => loadSkill(join(folder, name), writable))
  const skills = new Map<string, Skill>()
  const problems = read.flatMap((one) => one.problems)
  if (listed.names.length > SKILLS_MAX)
    problems.push({ file: folder, message: `there are ${listed.names.length} folders; only ${SKILLS_MAX} are read`, severity: 'error' })
  for (const { skill } of read) {
    const first = skill && skills.get(skill.name)
    if (first)
      problems.push({
        file: skill.folder,
        message: `'${skill.name}' is also the name of ${first.folder}, which is used`,
        severity: 'error',
      })
    else if (skill) skills.set(skill.name, skill)
  }
  return { skills: [...skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), problems }
}

/** Reads one skill. `writable` must be real paths. Never rejects. */
export async function loadSkill(
  path: string,
  writable: readonly string[] = [],
): Promise<{ readonly skill?: Skill; readonly problems: readonly SkillProblem[] }> {
  const file = join(path, SKILL_FILE)
  const fail = (message: string) => ({ problems: [{ file, message, severity: 'error' as const }] })
  const folder = await realpath(path).catch(() => undefined)
  if (folder === undefined) return fail('this folder cannot be read')
  const workspace = writable.find((one) => `${folder}${sep}`.startsWith(one + sep))
  if (workspace !== undefined) return fail(`this folder is in the workspace ${workspace}, where the agent could change it`)
  const read = await readInside(folder, join(folder, SKILL_FILE), SKILL_FILE_BYTES_MAX)
  if ('problem' in read) return fail(read.problem)
  // The parser of YAML is large, and many installations have no skill.
  const { parseSkillMd } = await import('./parse-skill-md.ts')
  const { skill, problems } = parseSkillMd(read.text, basename(path))
  return { ...(skill && { skill: { ...skill, folder } }), problems: problems.map((problem) => ({ file, ...problem })) }
}

async function listFolders(folder: string): Promise<{ readonly names: readonly string[] } | { readonly problem: string | undefined }> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    const folders = entries.filter((entry) => !entry.name.startsWith('.') && (entry.isDirectory() || entry.isSymbolicLink()))
    return { names: folders.map(({ name }) => name).sort() }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return { problem: code === 'ENOENT' ? undefined : `this folder cannot be read (${code})` }
  }
}
