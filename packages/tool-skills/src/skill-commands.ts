/** The commands `sluice skills list`, `show`, `check`, `waiting`, `accept`, `add` and `remove`. See `docs/skills.md`. */
import { realpath, rm } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  AppError,
  CATALOGUE,
  type CommandContext,
  type CommandHelp,
  errorText,
  type Host,
  oneLine,
  printable,
  printableLine,
} from '@sluice/sdk'
import { type LoadedSkills, loadSkill, loadSkills, SKILL_FILE, type Skill } from './load-skills.ts'
import type { SkillProblem } from './parse-skill-md.ts'
import { acceptProposal, installSkill, type Proposal, proposalNamed, readProposals } from './proposals.ts'
import { readContent, type SkillContent } from './skill-content.ts'
import type { SkillLibrary } from './skill-library.ts'
import { skillNamed } from './skill-read.ts'

export type CommandName = keyof (typeof CATALOGUE)['tool-skills']['commandHelp']

const SHOWN_CHARS = 120

export class SkillCommands {
  readonly #host: Host
  readonly #library: SkillLibrary

  constructor(host: Host, library: SkillLibrary) {
    this.#host = host
    this.#library = library
  }

  async run(name: CommandName, context: CommandContext): Promise<number> {
    const { words, values } = readArguments(name, context)
    const [word] = words
    switch (name) {
      case 'skills list':
        return this.#list(context)
      case 'skills show':
        return this.#show(word ?? '', context)
      case 'skills check':
        return this.#check(word, context)
      case 'skills waiting':
        return this.#waiting(word, context)
      case 'skills accept':
        return this.#accept(word ?? '', words[1] ?? '', context)
      case 'skills add':
        return this.#add(resolve(context.cwd, word ?? ''), values.replace === true, context)
      case 'skills remove':
        return this.#remove(word ?? '', context)
    }
  }

  async #list(context: CommandContext): Promise<number> {
    const { skills, problems } = await this.#read()
    if (context.json) context.print(JSON.stringify({ folder: this.#library.folder, skills, problems }))
    else {
      if (skills.length === 0) context.print(`There are no skills in ${this.#library.folder}; 'sluice skills add <folder>' adds one.`)
      for (const { name, description } of skills) context.print(`${name}: ${oneLine(description, SHOWN_CHARS)}`)
      for (const problem of problems) context.warn(problemLine(problem))
    }
    return 0
  }

  async #show(name: string, context: CommandContext): Promise<number> {
    const skill = skillNamed((await this.#read()).skills, name)
    const content = await readContent(skill.folder)
    if (context.json) context.print(JSON.stringify({ ...skill, ...shownContent(content) }))
    else {
      context.print(`folder: ${skill.folder}`)
      if (skill.license !== undefined) context.print(`license: ${oneLine(skill.license, SHOWN_CHARS)}`)
      if (skill.compatibility !== undefined) context.print(`compatibility: ${printableLine(skill.compatibility)}`)
      if (skill.allowedTools !== undefined)
        context.print(
          `allowed-tools: ${printableLine(skill.allowedTools)} (a suggestion of the author; the policy decides about each call)`,
        )
      printContent(content, context)
    }
    return 0
  }

  async #check(folder: string | undefined, context: CommandContext): Promise<number> {
    const given = folder === undefined ? undefined : resolve(context.cwd, folder)
    const one = given === undefined ? undefined : await loadSkill(given)
    const { skills, problems } = one ? { skills: one.skill ? [one.skill] : [], problems: one.problems } : await this.#read()
    if (context.json) context.print(JSON.stringify({ skills, problems }))
    else {
      for (const problem of problems) context.warn(problemLine(problem))
      context.print(`Usable skills: ${skills.length}; errors: ${problems.filter(isError).length}.`)
    }
    return problems.some(isError) ? 1 : 0
  }

  async #waiting(name: string | undefined, context: CommandContext): Promise<number> {
    const all = await this.#proposals()
    const shown = name === undefined ? all : [proposalNamed(all, name)]
    if (context.json) context.print(JSON.stringify(shown.map(shownProposal)))
    else if (shown.length === 0) context.print('No skill waits for an operator.')
    else if (name === undefined) {
      for (const proposal of shown) context.print(proposalLine(proposal))
      context.print("'sluice skills waiting <name>' shows one and the command that accepts it.")
    } else for (const proposal of shown) printProposal(proposal, context)
    return 0
  }

  async #accept(name: string, hash: string, context: CommandContext): Promise<number> {
    return this.#added(name, await acceptProposal(this.#host, this.#library, { name, hash, by: context.by }), context)
  }

  async #add(given: string, replaces: boolean, context: CommandContext): Promise<number> {
    const folder = await realpath(given).catch(() => {
      throw new AppError('not_found', `There is no folder '${printableLine(given)}'`)
    })
    const { skill, problems } = await loadSkill(folder)
    if (!skill) throw new AppError('invalid_request', `${folder} has errors: ${problems.map(problemLine).join('; ')}`)
    for (const problem of problems) context.warn(problemLine(problem))
    const { skills } = await this.#read()
    if (!replaces && skills.some(({ name }) => name === skill.name))
      throw new AppError('conflict', `There is a skill '${skill.name}' already; --replace replaces it`)
    const content = await readContent(folder)
    await this.#host.service('audit')?.({ kind: 'skill_added', by: context.by, detail: { skill: skill.name, folder, hash: content.hash } })
    return this.#added(skill.name, await installSkill(this.#library, skill.name, content), context)
  }

  #added(name: string, folder: string, context: CommandContext): number {
    if (context.json) context.print(JSON.stringify({ added: name, folder }))
    else context.print(`Added ${name} as ${folder}.`)
    return 0
  }

  async #remove(name: string, context: CommandContext): Promise<number> {
    const { skills, problems } = await this.#read()
    const broken = problems.find(({ file }) => file === resolve(this.#library.folder, basename(name), SKILL_FILE))
    const folder = broken ? resolve(this.#library.folder, basename(name)) : await this.#installed(skillNamed(skills, name))
    await this.#host.service('audit')?.({ kind: 'skill_removed', by: context.by, detail: { skill: basename(name), folder } })
    await rm(folder, { recursive: true })
    await this.#library.reload()
    context.print(context.json ? JSON.stringify({ removed: name }) : `Removed ${folder}.`)
    return 0
  }

  /** Returns the folder or the link of a skill in the folder of skills. A link is removed without its target. */
  async #installed({ folder, name }: Skill): Promise<string> {
    for (const candidate of [name, basename(folder)]) {
      const path = resolve(this.#library.folder, candidate)
      if ((await realpath(path).catch(() => undefined)) === folder) return path
    }
    throw new AppError('conflict', `The link to ${folder} has another name than the skill; remove it by hand`)
  }

  #read(): Promise<LoadedSkills> {
    return loadSkills(this.#library.folder, this.#host.workspaces)
  }

  #proposals(): Promise<readonly Proposal[]> {
    return readProposals(this.#host.workspaces, this.#library.folder)
  }
}

const isError = ({ severity }: SkillProblem): boolean => severity === 'error'

const problemLine = ({ file, line, message, severity }: SkillProblem): string =>
  printableLine(`${file}${line === undefined ? '' : `:${line}`}: ${severity}: ${message}`)

const shownContent = ({ files, hash }: SkillContent) => ({
  hash,
  files: files.map(({ path, bytes, isExecutable }) => ({ path, bytes: bytes.length, executable: isExecutable })),
})

const shownProposal = ({ folder, name, replaces, skill, content, problems }: Proposal) => ({
  name,
  folder,
  replaces,
  description: skill?.description ?? null,
  ...(content ? shownContent(content) : { hash: null, files: [] }),
  problems,
})

const proposalLine = ({ name, replaces, skill, problems }: Proposal): string =>
  `${printableLine(name)} (${replaces ? 'changes an installed skill' : 'new'}): ${skill ? oneLine(skill.description, SHOWN_CHARS) : problems.map(problemLine).join('; ')}`

function printContent({ files }: SkillContent, { print }: CommandContext): void {
  for (const { path, bytes, isExecutable } of files) {
    print('')
    print(`--- ${printableLine(path)} (${bytes.length} bytes${isExecutable ? ', executable' : ''})`)
    const text = textOf(bytes)
    print(text === undefined ? '(not a text)' : printable(text.trimEnd()))
  }
}

function printProposal(proposal: Proposal, context: CommandContext): void {
  const { folder, name, content, skill, problems } = proposal
  context.print(`folder: ${printableLine(folder)}`)
  for (const problem of problems) context.warn(problemLine(problem))
  if (content) printContent(content, context)
  if (!content || !skill) return
  context.print('')
  context.print(`To use it as it is shown: sluice skills accept ${name} ${content.hash}`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Throws `invalid_request` with the usage. */
function readArguments(name: CommandName, { args }: CommandContext) {
  const { options = {}, usage = '' }: CommandHelp = CATALOGUE['tool-skills'].commandHelp[name]
  const counts = { min: usage.split('<').length - 1, optional: usage.split('[').length - 1 }
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(Object.keys(options).map((option) => [option, { type: 'boolean' as const }])),
    })
    if (positionals.length < counts.min || positionals.length > counts.min + counts.optional) throw new Error('Wrong number of arguments')
    return { words: positionals, values: values as Readonly<Record<string, boolean | undefined>> }
  } catch (cause) {
    const [why = ''] = errorText(cause).split(/\.? To specify|\n/)
    throw new AppError('invalid_request', `${why.replace(/\.$/, '')}; usage: sluice ${name} ${usage}`.trimEnd(), { cause })
  }
}
