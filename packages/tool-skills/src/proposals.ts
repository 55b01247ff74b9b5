/** Skills that agents have written to `skills/` in their workspaces. A person accepts exactly the content that was shown. */
import { readdir, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { requireShownHash } from '@sluice/kit'
import { AppError, errorText, type Host } from '@sluice/sdk'
import { loadSkill, type Skill } from './load-skills.ts'
import type { SkillProblem } from './parse-skill-md.ts'
import { readContent, type SkillContent, writeContent } from './skill-content.ts'
import type { SkillLibrary } from './skill-library.ts'

const PROPOSALS_MAX = 200

export interface Proposal {
  /** The folder in the workspace. */
  readonly folder: string
  /** The name under which the skill would be installed; that of the folder while the skill has errors. */
  readonly name: string
  /** True when a skill of this name is installed with another content. */
  readonly replaces: boolean
  /** Absent when the skill has errors. */
  readonly skill?: Skill
  /** Absent when the files cannot be read. */
  readonly content?: SkillContent
  readonly problems: readonly SkillProblem[]
}

/** Returns the proposals whose content is not installed, sorted by folder. Never rejects. */
export async function readProposals(workspaces: readonly string[], installed: string): Promise<readonly Proposal[]> {
  const proposals: Proposal[] = []
  for (const workspace of workspaces) {
    const parent = join(await realpath(workspace).catch(() => workspace), 'skills')
    const isLink = (await realpath(parent).catch(() => parent)) !== parent
    const entries = isLink ? [] : await readdir(parent, { withFileTypes: true }).catch(() => [])
    const names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
    for (const name of names.sort().slice(0, PROPOSALS_MAX)) {
      const proposal = await readProposal(join(parent, name), installed)
      if (proposal) proposals.push(proposal)
    }
  }
  return proposals
}

async function readProposal(folder: string, installed: string): Promise<Proposal | undefined> {
  const read = await loadSkill(folder)
  const name = read.skill?.name ?? basename(folder)
  const present = await readContent(join(installed, name)).catch(() => undefined)
  try {
    const content = await readContent(folder)
    return content.hash === present?.hash ? undefined : { folder, name, replaces: present !== undefined, ...read, content }
  } catch (error) {
    return { folder, name, replaces: present !== undefined, problems: [{ file: folder, message: errorText(error), severity: 'error' }] }
  }
}

/** Throws `not_found` when no proposal has the name, and `conflict` when several agents propose one. */
export function proposalNamed(proposals: readonly Proposal[], name: string): Proposal {
  const [found, other] = proposals.filter((proposal) => proposal.name === name)
  if (!found) throw new AppError('not_found', `No skill '${name}' waits; 'sluice skills waiting' lists the waiting skills`)
  if (other) throw new AppError('conflict', `Two agents propose '${name}': ${found.folder} and ${other.folder}. Remove one of the folders`)
  return found
}

interface Acceptance {
  readonly name: string
  /** The whole hash of the content that a person has read. */
  readonly hash: string
  readonly by: string
}

/**
 * Records who accepts a proposal, installs it, and resolves to the folder of the skill. Throws `conflict` when the proposal has another
 * content than the hash.
 */
export async function acceptProposal(host: Host, library: SkillLibrary, { name, hash, by }: Acceptance): Promise<string> {
  const { content, skill, folder, problems } = proposalNamed(await readProposals(host.workspaces, library.folder), name)
  if (!content || !skill)
    throw new AppError('invalid_request', `${folder} has errors: ${problems.map(({ message }) => message).join('; ')}`)
  requireShownHash({ given: hash, present: content.hash, name: folder, lookAgain: `'sluice skills waiting ${skill.name}'` })
  await host.service('audit')?.({ kind: 'skill_accepted', by, detail: { skill: skill.name, folder, hash: content.hash } })
  return installSkill(library, skill.name, content)
}

/** Resolves to the folder of the skill, which is then in force. */
export async function installSkill(library: SkillLibrary, name: string, content: SkillContent): Promise<string> {
  const folder = await writeContent(library.folder, name, content)
  await library.reload()
  return folder
}
