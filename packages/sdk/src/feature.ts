/** The seam: everything Sluice can do beyond its core is a `Feature`, chosen by a profile. */
import type * as v from 'valibot'
import type { FeatureId } from './catalogue.ts'
import type { Channel } from './channel.ts'
import type { Command } from './command.ts'
import type { Host, Services } from './host.ts'
import type { Provider } from './model.ts'
import type { Observer } from './observer.ts'
import type { Route } from './route.ts'
import type { Sandbox } from './sandbox.ts'
import type { ConfigSchema, Section } from './section.ts'
import type { Tool } from './tool.ts'

/** What one feature adds. Every name in here also stands in its catalogue row. */
export interface Parts {
  readonly channels?: readonly Channel[]
  /** Of a feature that names its own tools: looked at again after `register`, so a getter may answer what that found. */
  readonly tools?: readonly Tool[]
  readonly routes?: readonly Route[]
  readonly commands?: readonly Command[]
  readonly providers?: readonly Provider[]
  readonly sandboxes?: readonly Sandbox[]
  readonly observers?: readonly Observer[]
  readonly services?: Partial<Services>
  /** Why this configuration leaves it out, such as `enabled = false`; of the other parts only commands are then looked at. */
  readonly off?: string
  /** Says what this machine lacks for the feature, and what to install; a quick look, for `sluice features`. */
  lacks?(): string | undefined
  /** Proves on this machine that it can do its work, and says what to install where it cannot; for `sluice doctor`. */
  check?(signal: AbortSignal): Promise<readonly Finding[]>
  /** How the connections are that it keeps open, where they are no channels; from memory. */
  links?(): readonly LinkHealth[]
  /** Lines for the system prompt, asked for at each turn. */
  prompt?(): string
  /** Phase 2, registration: credential checks, device discovery. Once per build; a rejection marks the feature failed. */
  register?(signal: AbortSignal): Promise<void>
  /**
   * Called once, before `close`, when the daemon stops or a new build of the feature is about to register in its place.
   * Turns that use the feature may go on for long after it: stop here what must not go on meanwhile, such as motors.
   */
  drain?(): Promise<void>
  /** Phase 4, shutdown: idempotent, called in reverse order. Phase 3 is the parts at work. */
  close?(): Promise<void>
}

/** A connection that a feature keeps open, such as the one to a broker. */
export interface LinkHealth {
  readonly name: string
  readonly state: 'ok' | 'connecting' | 'down'
}

/** What a check found. */
export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** What mends it; of a finding that is not `ok`. */
  readonly fix?: string
}

export interface Feature<Schema extends ConfigSchema = ConfigSchema> {
  /** = folder = catalogue key; an embedder's own starts with `x-`. */
  readonly id: FeatureId
  readonly section?: Section<Schema>
  /**
   * Phase 1, construction: synchronous, so no I/O fits in. Also called by commands that never start the daemon; `host`
   * may be kept, its methods may be called from phase 2 on.
   */
  build(host: Host, config: v.InferOutput<Schema>): Parts
}

/** Identity at run time; at compile time it types `config` from `section.schema`. */
export const defineFeature = <const Schema extends ConfigSchema>(feature: Feature<Schema>): Feature => feature as unknown as Feature
