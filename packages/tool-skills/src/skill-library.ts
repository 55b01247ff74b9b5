/** The skills in force. They are read again after each change in the folder. */
import { signalScope, watchFolder } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import type { LoadedSkills, Skill } from './load-skills.ts'

const NONE: LoadedSkills = { skills: [], problems: [] }

/** Empty until `start`. */
export class SkillLibrary {
  /** The absolute path of the folder. */
  readonly folder: string
  readonly #host: Host
  readonly #ended = new AbortController()
  #loaded = NONE
  #watching: Promise<void> | undefined

  constructor(host: Host, folder: string) {
    this.#host = host
    this.folder = folder
  }

  get skills(): readonly Skill[] {
    return this.#loaded.skills
  }

  get problems(): LoadedSkills['problems'] {
    return this.#loaded.problems
  }

  /** Reads the skills and watches the folder until `close`. */
  async start(signal: AbortSignal): Promise<void> {
    using starting = signalScope([signal, this.#ended.signal])
    const { finishWriting } = await import('./skill-content.ts')
    await finishWriting(this.folder).catch((error: unknown) =>
      this.#host.log.error('interrupted change of a skill not finished', { error }),
    )
    const { listening, ended } = watchFolder({
      folder: this.folder,
      files: ['SKILL.md'],
      clock: this.#host.clock,
      signal: this.#ended.signal,
      onChange: () => this.reload(),
    })
    this.#watching = ended
    await listening
    if (!starting.signal.aborted) await this.#load()
  }

  /** Reads the folder again, and offers a changed list to later turns. */
  async reload(): Promise<void> {
    const before = shownPart(this.#loaded)
    await this.#load()
    if (shownPart(this.#loaded) !== before) this.#host.refresh('the skills changed')
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.#watching
  }

  async #load(): Promise<void> {
    const { loadSkills } = await import('./load-skills.ts')
    this.#loaded = await loadSkills(this.folder, this.#host.workspaces)
    for (const { file, line, message, severity } of this.#loaded.problems) {
      if (severity === 'error') this.#host.log.error('skill not loaded', { file, ...(line !== undefined && { line }), problem: message })
    }
  }
}

/** Returns a text that changes with the skills that the model sees. */
const shownPart = ({ skills }: LoadedSkills): string =>
  JSON.stringify(skills.map(({ name, description, folder }) => [name, description, folder]))
