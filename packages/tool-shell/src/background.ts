/** Commands that run on after their call, of the sessions of this process. */
import { randomBytes } from 'node:crypto'
import { StreamEnds } from '@sluice/kit'
import { errorText, type Spawn, type SpawnRequest, type SpawnResult } from '@sluice/sdk'
import { DROPPED, joined } from './result-text.ts'

/** The commands of one session that run in the background at once, and of all sessions. */
const SESSION_MAX = 8
const RUNNING_MAX = 32
/** The commands that are known, ended ones included; the oldest ended one goes first. */
const KNOWN_MAX = 128
const ID_BYTES = 3

/** A command that was started. */
export class Job {
  readonly id = randomBytes(ID_BYTES).toString('hex')
  readonly session: string
  readonly command: string
  /** Resolves when the command has ended, also by `stop`. Rejects when it could not be started. */
  readonly result: Promise<SpawnResult>
  /** Resolves when the command has ended, in whatever way. */
  readonly settled: Promise<void>
  /** How the command ended; undefined while it runs. */
  end: SpawnResult | { readonly failure: string } | undefined
  readonly #abort = new AbortController()
  readonly #outputBytesMax: number
  #unread: StreamEnds

  constructor(spawn: Spawn, request: Omit<SpawnRequest, 'signal'>, { session, command }: { session: string; command: string }) {
    this.session = session
    this.command = command
    this.#unread = new StreamEnds(request.outputBytesMax)
    this.#outputBytesMax = request.outputBytesMax
    this.result = spawn({
      ...request,
      signal: this.#abort.signal,
      onOutput: (_stream, text) => {
        this.#unread.push(Buffer.from(text))
      },
    })
    this.settled = this.result.then(
      (result) => {
        this.end = result
      },
      (error: unknown) => {
        this.end = { failure: errorText(error) }
      },
    )
  }

  /** Ends the command, and every process that it has started. */
  stop(): void {
    this.#abort.abort()
  }

  /** Returns the output since the last call; both ends of it where it is longer than the limit of the command. */
  read(): string {
    const unread = this.#unread
    this.#unread = new StreamEnds(this.#outputBytesMax)
    return joined([unread.text(), unread.isCut ? DROPPED : ''])
  }
}

export class BackgroundJobs {
  readonly #jobs = new Map<string, Job>()
  #isClosed = false

  /** Keeps a running command. Returns false when there are too many, and nothing is kept. */
  keep(job: Job): boolean {
    const running = [...this.#jobs.values()].filter(({ end }) => !end)
    const ofSession = running.filter(({ session }) => session === job.session)
    if (this.#isClosed || running.length >= RUNNING_MAX || ofSession.length >= SESSION_MAX) return false
    this.#jobs.set(job.id, job)
    for (const [id, { end }] of this.#jobs) {
      if (this.#jobs.size <= KNOWN_MAX) break
      if (end) this.#jobs.delete(id)
    }
    return true
  }

  find(id: string): Job | undefined {
    return this.#jobs.get(id)
  }

  /** Returns a command of the session. */
  of(session: string | null, id: string): Job | undefined {
    const job = this.#jobs.get(id)
    return job?.session === session ? job : undefined
  }

  /** Says that a session has no such command, and which ones it has. */
  missingText(session: string | null, id: string): string {
    const own = [...this.#jobs.values()].filter((one) => one.session === session && !one.end).map((one) => one.id)
    const known = own.length > 0 ? ` These run: ${own.join(', ')}.` : ''
    return `There is no command ${id} in this conversation.${known} A new conversation ends its commands; a restart of the daemon, and a change of its settings, end all.`
  }

  /** Ends the commands of a session, of which nothing is known afterwards. */
  async end(session: string): Promise<void> {
    const jobs = [...this.#jobs.values()].filter((job) => job.session === session)
    for (const { id } of jobs) this.#jobs.delete(id)
    await stopped(jobs)
  }

  /** Ends all commands. May be called twice. */
  async close(): Promise<void> {
    this.#isClosed = true
    await stopped([...this.#jobs.values()])
  }
}

async function stopped(jobs: readonly Job[]): Promise<void> {
  for (const job of jobs) job.stop()
  await Promise.all(jobs.map(({ settled }) => settled))
}
