/** Answers in place of features that this build leaves out, or that are not ready, with how to get them. */
import { AppError, buildHint, type CatalogueId, type ErrorCode, type Feature, ROWS, type Row, type Tool } from '@sluice/sdk'
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

/** The rows no feature of this build claims. */
export function leftOutRows(features: readonly Feature[]): readonly (readonly [CatalogueId, Row])[] {
  const compiled = new Set<string>(features.map(({ id }) => id))
  return ROWS.filter(([id]) => !compiled.has(id))
}

/** The refusal of anything that belongs to a feature this build lacks. */
export const notCompiled = (id: CatalogueId, what: string): AppError =>
  new AppError('not_compiled', `${what} needs the feature ${id}, which this build leaves out. To get it: ${buildHint(id)}`, {
    fields: { feature: id, build: buildHint(id) },
  })

const refusingTool = (name: string, description: string, refuse: () => AppError): Tool => ({
  name,
  description,
  input: v.looseObject({}),
  risk: 'read',
  run: () => Promise.reject(refuse()),
})

/** A tool of a feature that this build leaves out. It answers every call with the build instruction. */
export interface LeftOutTool {
  readonly feature: CatalogueId
  readonly build: string
  readonly tool: Tool
}

/** Every tool of the left-out features, except where a feature of the build has one of that name. */
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

/** Tells the model of left-out tools that it is not offered. Empty if there are none. */
export const leftOutLine = (tools: readonly LeftOutTool[]): string =>
  tools.length === 0
    ? ''
    : `These tools are not in this build: ${tools.map(({ tool }) => tool.name).join(', ')}. Calling one of them returns the command that builds it in.`

/** A tool that refuses for every tool of a feature that is not ready. */
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

/** A route for every left-out row's, and for every route of a feature that is not ready. */
export function stubRoutes(features: readonly Feature[], instances: readonly Instance[]): StubRoute[] {
  const leftOut = leftOutRows(features).flatMap(([id, row]) =>
    (row.routes ?? []).map((route) => {
      const refusal = notCompiled(id, route)
      return { ...methodAndPath(route), code: 'not_compiled' as const, detail: refusal.message, fields: refusal.fields }
    }),
  )
  const asleep = instances.flatMap((instance) =>
    namesOf(instance, 'routes').map((route) => {
      const { id } = instance.feature
      return instance.state() === 'unconfigured'
        ? { ...methodAndPath(route), code: 'not_found' as const, detail: `${id} is not configured: ${instance.reason()}` }
        : { ...methodAndPath(route), code: 'unavailable' as const, detail: `${id} is not ready: ${instance.reason()}` }
    }),
  )
  return [...leftOut, ...asleep]
}

/** The names a feature that is not ready would have brought. */
function namesOf(instance: Instance, what: 'tools' | 'routes'): readonly string[] {
  if (instance.state() === 'ready') return []
  const row: Row | undefined = ROWS.find(([id]) => id === instance.feature.id)?.[1]
  return row?.[what] ?? []
}

function methodAndPath(route: string): { method: string; path: string } {
  const space = route.indexOf(' ')
  return { method: route.slice(0, space), path: route.slice(space + 1) }
}
