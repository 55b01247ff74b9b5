/** The services that a feature gets when it is built. A feature reaches everything outside of itself through them. */
import type * as v from 'valibot'
import type { StartCompanion } from '../channel/companion.ts'
import type { Events } from '../observe/events.ts'
import type { Backlog, Vitals } from '../observe/observer.ts'
import type { ApprovalGate } from '../store/approval-store.ts'
import type { NodeProgram } from '../store/node-report.ts'
import type { OneTimeKeysOf } from '../store/one-time-keys.ts'
import type { Sops } from '../store/sop.ts'
import type { AuditKind } from '../store/sop-store.ts'
import type { KeyValue, Memories } from '../store/store.ts'
import type { Spawn } from '../tool/sandbox.ts'
import type { ToolContext } from '../tool/tool.ts'
import type { Workspace } from '../tool/workspace.ts'
import type { Logger } from '../values/logger.ts'
import type { Role } from '../values/route.ts'
import type { Standing } from '../values/standing.ts'
import type { FeatureId } from './catalogue.ts'

export interface Clock {
  nowMs(): number
  /** Milliseconds that never decrease, for durations. */
  monotonicMs(): number
  /** Resolves after `ms`, or when `signal` aborts. Never rejects, and does not keep the process alive. A timer may end up to a millisecond early. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Small secrets that a feature creates or receives at run time, encrypted at rest and kept apart for each feature. */
export interface SecretStore {
  get(name: string): Promise<string | undefined>
  set(name: string, value: string): Promise<void>
  delete(name: string): Promise<void>
  /**
   * Replaces the secret `before` with `after`, or resolves to false and changes nothing when another value is stored. `undefined`
   * means none, on both sides. Use it for each change that depends on what was read.
   */
  swap(name: string, before: string | undefined, after: string | undefined): Promise<boolean>
  /** Writes and deletes secrets in one commit: after a crash all changes are there, or none. `undefined` deletes a secret. */
  setAll(changes: ReadonlyMap<string, string | undefined>): Promise<void>
  /** Returns the secrets whose names begin with `prefix`, sorted by name. */
  list(prefix: string, limit: number): Promise<{ readonly name: string; readonly value: string }[]>
}

/** A device whose token is valid. */
export interface PairedDevice {
  readonly id: string
  readonly name: string
  readonly role: Role
  /** The device that was paired: this one, or the one that vouched for it. All devices of one origin are taken for one person. */
  readonly origin: string
}

/** The questions that features may ask about paired devices. */
export interface Pairing {
  /** Returns the devices that are paired now: neither revoked nor expired. */
  devices(): Promise<readonly PairedDevice[]>
  /** Returns one of them, or undefined. */
  device(id: string): Promise<PairedDevice | undefined>
  /** Returns the members of `devices` that were revoked together with their passkeys. */
  revokedAmong(devices: readonly string[]): Promise<readonly string[]>
  /** Returns the device that was paired: `device` itself, or the device that vouched for it. */
  originOf(device: string): Promise<string>
}

/** The addresses of a daemon. */
export interface Addresses {
  /** Where it listens, as `http://host:port`; null while no port is bound. */
  readonly listening: string | null
  /** `[gateway] public_url`. */
  readonly public: string | null
}

/** Signs a person in with any passkey of this gateway, for features that issue a credential of their own. */
export interface PasskeySignIn {
  /** Returns the options for the authenticator; `public_key` has them in the spelling of browsers. */
  start(): Promise<object>
  /** Throws `invalid_request` or `unauthorized` unless the authenticator has signed the challenge. */
  finish(body: unknown): Promise<{ readonly label: string; readonly role: Role; readonly issuedBy: string | null }>
}

/** A memory as the model reads it without asking for it. */
export interface RecalledMemory {
  /** One line. */
  readonly text: string
  /** Whether it is text of others: the text of a page may have led to it, or another client has stored it for all. */
  readonly untrusted: boolean
}

/** Something that waits for people. It has no text of theirs. */
export type WaitingWork =
  | {
      readonly kind: 'approval'
      readonly runId: string
      readonly stepId: string
      readonly gate: ApprovalGate
      /** The tool, the procedure, or the workflow name that the asking program gave. */
      readonly name: string
      /** Null: it never expires. */
      readonly expiresAtMs: number | null
      /** Whether a device sees the approval and may decide it. */
      mayDecide(device: PairedDevice): boolean
      /** Resolves to false once it was decided, withdrawn, or has expired. */
      isOpen(): Promise<boolean>
    }
  /** A message or a reply that was given up; operators can send it again. `channel` is its name for people, and `number` its number in the inbox or the outbox. */
  | { readonly kind: 'dead_letter'; readonly direction: 'inbound' | 'outbound'; readonly channel: string; readonly number: number }

/**
 * Calls `receive`, which must not throw, when something begins to wait for people: once in a cluster, and not again after a restart.
 * Returns an unsubscribe function.
 */
export type FollowWaiting = (receive: (waiting: WaitingWork) => void) => () => void

/** The services that features and the core offer each other by name. A consumer looks one up at run time and handles `undefined`. */
export interface Services {
  readonly memory: Memories
  /**
   * Returns the memories that fit a message, a line each and within 500 tokens; empty when none does. `reader` is as in `Memories.search`.
   */
  readonly recall: (reader: string, text: string) => Promise<readonly RecalledMemory[]>
  /** Ends the commands of a conversation that run in the background. Resolves when they have ended. */
  readonly endCommands: (session: string) => Promise<void>
  readonly vitals: () => Vitals
  /** Counts the unfinished and failed work in the store. Throws `unavailable` when the store cannot be read. */
  readonly backlog: () => Promise<Backlog>
  /** The procedure engine. Absent in commands that run without a daemon. */
  readonly sops: Sops
  /** Creates a paired device with a bearer token, for features that authenticate people. */
  readonly issueToken: (device: {
    readonly name: string
    readonly role: Role
    readonly expiresAtMs: number | null
    /** The device that vouches for it: revoking that one revokes this one, too. */
    readonly issuedBy: string | null
  }) => Promise<IssuedToken>
  readonly pairing: Pairing
  /** Reports what begins to wait for people, for features that notify them. */
  readonly followWaiting: FollowWaiting
  /** Returns the addresses of this daemon, for links that it prints. Absent in commands that run without a daemon. */
  readonly addresses: () => Addresses
  /** Keys that every node of a cluster knows. Absent in a daemon that shares its store with no other, where features keep them in memory. */
  readonly oneTimeKeys: OneTimeKeysOf
  /** Present where people can sign in with passkeys. */
  readonly passkeys: PasskeySignIn
  /** Writes one record to the audit log before an action with an outside effect: the action and who caused it. Resolves when it is durable. */
  readonly audit: (record: DeviceRecord) => Promise<void>
  /** The pins of this machine, where a feature can reach them. */
  readonly nativeGpio: SharedGpio
  /** Live readings of a chip over its debug port. */
  readonly chipProbe: ChipProbe
  /** Reads a TOML file of a feature, such as `robot.toml`; undefined when it does not exist. Throws `config_invalid` with line and column. */
  readonly readToml: <Schema extends v.GenericSchema>(file: string, schema: Schema) => Promise<v.InferOutput<Schema> | undefined>
  /** Present when `[transcription]` is enabled. */
  readonly transcribe: Transcribe
  /** Present when `[speech]` is enabled. */
  readonly speak: Speak
  /** Starts a turn that a client asked for earlier. Absent in commands that run without a daemon. */
  readonly startTurn: StartTurn
  /** Returns the absolute paths, without links, of the folders whose scripts commands of the agent may read and run. */
  readonly skillFolders: () => readonly string[]
  /** Returns the MCP servers that are programs of this machine, with the number of their processes now. */
  readonly mcpPrograms: () => readonly NodeProgram[]
  /**
   * The library by which the tool `browser` drives an installed Chromium itself: `missing` returns why it cannot be loaded, `load` the module.
   * Absent in builds without the backend `native`.
   */
  readonly browserLibrary: { missing(): string | undefined; load(): Promise<unknown> }
  /** Returns the text of each page of a PDF. Throws `invalid_request` for a file that is broken, encrypted or too large. */
  readonly pdfText: (pdf: Uint8Array, options: { readonly pages?: string; readonly signal: AbortSignal }) => Promise<string[]>
}

/** The progress of a turn that has no answer yet. */
export interface UnansweredTurn {
  /** The number of the attempt that runs or failed last; 1 is the first. */
  readonly attempt: number
  /** How many attempts failed that count for `max_attempts`: those while the model was there. */
  readonly counted: number
  /** When the first attempt began. */
  readonly sinceMs: number
  /** When to ask again. */
  readonly atMs: number
}

/**
 * Starts one turn for each `key`, in a session that exists, with its agent, owner, limits and policy. The answer goes where the answers
 * of the session go. Resolves when the start is durable: to `gone` when the client may no longer talk to the agent, to `known` when
 * nothing is left to do for the key, and to an `UnansweredTurn` while the turn runs or waits for its next attempt: the caller repeats
 * the call with it at its time. Throws `unavailable` or `rate_limited` when a later call may succeed.
 */
export type StartTurn = (turn: {
  readonly key: string
  readonly session: string
  /** The client, as in `ToolContext.caller`. */
  readonly caller: string
  /** The standing with which the client asked for the turn; the turn has it or a lower one that the client has now. Absent: the latter. */
  readonly standing?: Standing
  /** Whether other people read the answers in the conversation, where the client asked for the turn. Absent: unknown. */
  readonly isInRoom?: boolean | undefined
  readonly text: string
  readonly atMs: number
  /** What an earlier call with the key resolved to. */
  readonly earlier?: UnansweredTurn
}) => Promise<'started' | 'known' | 'gone' | UnansweredTurn>

export interface ConfigAddition {
  /** The list of tables to append to, such as `peripherals.boards`. */
  readonly list: string
  readonly entry: Readonly<Record<string, string | number | boolean>>
  /** Further keys to set in the same change, by their paths. */
  readonly set?: Readonly<Record<string, string | number | boolean>>
}

/** Returns the text of a recording; `workspace` is that of the agent that gets it. Throws `invalid_request` for data that is not audio, and `unavailable` when a later call may succeed. */
export type Transcribe = (
  audio: { readonly bytes: Uint8Array; readonly name: string; readonly mime?: string },
  options: { readonly signal: AbortSignal; readonly workspace: Workspace },
) => Promise<string>

/** A container of spoken audio: `wav` has 16-bit PCM, `ogg` has Opus. */
export type SpokenFormat = 'wav' | 'ogg'

/**
 * Speaks a text in one of `formats`, of which the first is preferred; `workspace` is that of the agent who speaks. Throws
 * `invalid_request` for a text that cannot be spoken, and `unavailable` when a later call may succeed.
 */
export type Speak = (
  text: string,
  options: { readonly formats: readonly SpokenFormat[]; readonly signal: AbortSignal; readonly workspace: Workspace },
) => Promise<{ readonly bytes: Uint8Array; readonly format: SpokenFormat; readonly mime: string }>

export interface DeviceRecord {
  /** The kind of act. Default: `device_write`. */
  readonly kind?: AuditKind
  /** Who did it, as in `SopEvent.by`. */
  readonly by: string
  /** Plain data without secrets. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** Pins by the numbers of the board's documentation. Throws `invalid_request` for a pin that does not exist or is reserved. */
export interface NativeGpio {
  read(pin: number): Promise<0 | 1>
  write(pin: number, value: 0 | 1): Promise<void>
}

/** The one access to these pins for all features, so that leases and reservations hold for each of them. */
export interface SharedGpio extends NativeGpio {
  /** True when this machine is known to have such pins. */
  readonly isThere: boolean
  /** Runs one transaction of a client. Throws `conflict` while one of the pins is leased to another client. */
  use<Result>(use: PinUse, work: () => Promise<Result>): Promise<Result>
}

export interface PinUse {
  readonly tool: string
  readonly context: ToolContext
  /** The values to write, for the audit log. Absent when the transaction only reads. */
  readonly write?: Readonly<Record<string, unknown>>
  /** The written pins, which are then leased to the client. */
  readonly pins?: readonly (number | string)[]
}

/** Reads a board by its name in the configuration. Throws `invalid_request` when it cannot be read live, else `unavailable`. */
export interface ChipProbe {
  info(board: string, signal: AbortSignal): Promise<ChipInfo>
}

export interface ChipInfo {
  readonly chip: string
  readonly architecture: string
  /** The memory regions as read from the chip; `start` and `length` in bytes. */
  readonly memory: readonly { readonly name: string; readonly start: number; readonly length: number }[]
}

export interface IssuedToken {
  readonly token: string
  readonly deviceId: string
}

/** An address of a host name, in the shape of `node:dns`. */
export interface ResolvedAddress {
  readonly address: string
  /** 4 or 6. */
  readonly family: number
}

/** `onlyPublic`: the hosts of `[http] allow_private` must have public addresses, too. */
export interface AddressRule {
  readonly onlyPublic?: boolean
}

export interface PublicRequest extends AddressRule {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Ends the request and the reading of its body. */
  readonly signal: AbortSignal
  /** The largest answer in bytes; a longer body ends with an error. */
  readonly responseBytesMax?: number
  /** Called before each request, redirects included. Throws to refuse the URL. */
  readonly admit?: (url: URL) => void
}

export interface Host {
  readonly feature: FeatureId
  readonly log: Logger
  readonly clock: Clock
  /** Sends requests to addresses that the operator configured. */
  readonly fetch: typeof fetch
  /**
   * Sends requests to addresses that a model or a sender named: http and https only, no credentials in the URL, every address
   * of the host is public, the connection goes to the address that was checked, and each of at most 5 redirects is checked
   * again. Throws `forbidden` otherwise. `[http] allow_private` lists hosts that may have private addresses,
   * unless the request is `onlyPublic`.
   */
  readonly publicFetch: (url: string, init: PublicRequest) => Promise<Response>
  /**
   * Returns the addresses of such a host by the same rule, for connections other than HTTP requests. Connect to one of them and
   * do not resolve the name again. Throws `forbidden` when an address is not public, and `upstream` when the host has no address.
   */
  readonly publicAddresses: (hostname: string, signal: AbortSignal, rule?: AddressRule) => Promise<readonly ResolvedAddress[]>
  /** Starts a program. Features have no other way to start one. */
  readonly spawn: Spawn
  /** Whether a program that starts now runs in a sandbox that a probe has verified. */
  readonly confines: () => boolean
  /** Resolves once a sandbox is chosen, which takes seconds after a start: `confines` is false before. */
  readonly sandboxChosen: () => Promise<void>
  /** Runs a module of the feature in a process next to the daemon. */
  readonly companion: StartCompanion
  /** Durable key-value pairs of this feature. */
  readonly keyValue: KeyValue
  readonly secrets: SecretStore
  readonly events: Events
  /** The absolute paths of the workspaces of all agents, in which their tools can write. A tool works in `ToolContext.workspace`. */
  readonly workspaces: readonly string[]
  /** The files of the main agent, for programs that a feature runs outside of turns. A tool works in `ToolContext.workspace`. */
  readonly workspace: Workspace
  /** The absolute path of the data directory. A feature keeps its files there in a folder of its own name. */
  readonly dataDir: string
  /** Asks the daemon to build this feature again, such as after a device was connected. Running work ends on the old parts. */
  rebuild(reason: string): void
  /** Asks the daemon to evaluate again which tools of this feature are `available`. */
  refresh(reason: string): void
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
}
