/** Tools and routes that answer in place of features that this build leaves out or that are not ready. */
import {
  AppError,
  buildHint,
  type CatalogueId,
  type ErrorCode,
  type Feature,
  howToGet,
  ROWS,
  type Row,
  rowOfFeature,
  type Tool,
} from '@sluice/sdk'
import * as v from 'valibot'
import type { Instance } from './instance.ts'

/** A route that answers for something this daemon does not offer now. */
export interface StubRoute {
  readonly method: string
  readonly path: string
  readonly code: Extract<ErrorCode, 'not_compiled' | 'not_found' | 'unavailable'>
  readonly detail: string
  readonly fields?: Readonly<Record<string, unknown>>
}

/** A tool of a feature that this build leaves out. It answers every call with the build command. */
export interface LeftOutTool {
  readonly feature: CatalogueId
  readonly build: string
  readonly tool: Tool
}

/** The tools of all left-out features, except those whose name a feature of the build uses. */
export function leftOutTools(features: readonly Feature[], taken: ReadonlySet<string>): LeftOutTool[] {
  return leftOutRows(features).flatMap(([feature, row]) =>
    (row.tools ?? [])
      .filter((name) => !taken.has(name))
      .map((name) => {
        const description = `${row.summary}. Not in this build: a call returns the command that builds it in.`
        return { feature, build: buildHint(feature), tool: refusingTool(name, description, () => notCompiled(feature, `The tool ${name}`)) }
      }),
  )
}

/** A tool that refuses, for each tool of a feature that is not ready. */
export function stubTools(instances: readonly Instance[]): Tool[] {
  return instances.flatMap((instance) =>
    namesOf(instance, 'tools').map((name) =>
      refusingTool(
        name,
        instance.feature.id,
        () => new AppError('unavailable', `The tool ${name} is not ready: ${instance.reason() ?? 'unknown'}`),
      ),
    ),
  )
}

/** A route for each route of a left-out feature, and of a feature that is not ready. */
export function stubRoutes(features: readonly Feature[], instances: readonly Instance[]): StubRoute[] {
  const leftOut = leftOutRows(features).flatMap(([id, row]) =>
    (row.routes ?? []).map((route): StubRoute => {
      const refusal = notCompiled(id, route)
      return { ...methodAndPath(route), code: 'not_compiled', detail: refusal.message, fields: refusal.fields }
    }),
  )
  const notReady = instances.flatMap((instance) =>
    namesOf(instance, 'routes').map((route): StubRoute => {
      const { id } = instance.feature
      return instance.state() === 'unconfigured'
        ? { ...methodAndPath(route), code: 'not_found', detail: `${id} is not configured: ${instance.reason()}` }
        : { ...methodAndPath(route), code: 'unavailable', detail: `${id} is not ready: ${instance.reason()}` }
    }),
  )
  return [...leftOut, ...notReady]
}

/** The catalogue rows of which this build has no feature. */
function leftOutRows(features: readonly Feature[]): readonly (readonly [CatalogueId, Row])[] {
  const compiled = new Set<string>(features.map(({ id }) => id))
  return ROWS.filter(([id]) => !compiled.has(id))
}

const notCompiled = (id: CatalogueId, subject: string): AppError =>
  new AppError('not_compiled', `${subject} needs the feature ${id}, which this build leaves out. To get it, ${howToGet(id)}`, {
    fields: { feature: id, build: buildHint(id) },
  })

const refusingTool = (name: string, description: string, refuse: () => AppError): Tool => ({
  name,
  description,
  input: v.looseObject({}),
  risk: 'read',
  egress: false,
  untrusted: false,
  run: () => Promise.reject(refuse()),
})

/** The names that the catalogue lists for a feature that is not ready. */
function namesOf(instance: Instance, kind: 'tools' | 'routes'): readonly string[] {
  if (instance.state() === 'ready') return []
  return rowOfFeature(instance.feature)?.[kind] ?? []
}

function methodAndPath(route: string): { method: string; path: string } {
  const space = route.indexOf(' ')
  return { method: route.slice(0, space), path: route.slice(space + 1) }
}
