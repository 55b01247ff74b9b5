/** What `/api/skills` answers. Loaded with its first request, because it reads folders. */
import type { Host } from '@sluice/sdk'
import { loadSkills, type Skill } from './load-skills.ts'
import { type Proposal, readProposals } from './proposals.ts'
import { readContent, type SkillContent } from './skill-content.ts'
import type { SkillLibrary } from './skill-library.ts'
import { skillNamed } from './skill-read.ts'
import type { SkillsPage, SkillWithFiles } from './skill-schemas.ts'

const TEXT_BYTES_MAX = 65_536

export async function skillsPage(host: Host, library: SkillLibrary): Promise<SkillsPage> {
  const [{ skills, problems }, proposals] = await Promise.all([
    loadSkills(library.folder, host.workspaces),
    readProposals(host.workspaces, library.folder),
  ])
  return {
    folder: library.folder,
    skills: skills.map(shownSkill),
    problems: problems.map((problem) => ({ ...problem })),
    waiting: proposals.map(shownProposal),
  }
}

export async function skillWithFiles({ skills }: SkillLibrary, name: string): Promise<SkillWithFiles> {
  const skill = skillNamed(skills, name)
  return { ...shownSkill(skill), ...shownContent(await readContent(skill.folder)) }
}

const shownSkill = ({ name, description, folder, license, compatibility, allowedTools }: Skill): SkillsPage['skills'][number] => ({
  name,
  description,
  folder,
  license: license ?? null,
  compatibility: compatibility ?? null,
  allowed_tools: allowedTools ?? null,
})

const shownProposal = ({ name, folder, replaces, skill, content, problems }: Proposal): SkillsPage['waiting'][number] => ({
  name,
  folder,
  replaces,
  description: skill?.description ?? null,
  problems: problems.map((problem) => ({ ...problem })),
  ...(content ? shownContent(content) : { hash: null, files: [] }),
})

const shownContent = ({ hash, files }: SkillContent): Pick<SkillWithFiles, 'hash' | 'files'> => ({
  hash,
  files: files.map(({ path, bytes, isExecutable }) => ({
    path,
    bytes: bytes.length,
    executable: isExecutable,
    text: bytes.length > TEXT_BYTES_MAX ? null : (textOf(bytes) ?? null),
  })),
})

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
