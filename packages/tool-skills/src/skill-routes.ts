/** `/api/skills`: the skills in force, their files, and the proposals of agents, which an operator accepts. */
import { AppError, defineRoute, type Host, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import type { SkillLibrary } from './skill-library.ts'
import { listSchema, oneSchema } from './skill-schemas.ts'

export const skillRoutes = (host: Host, library: SkillLibrary): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/skills',
    summary: 'The skills in force, the problems of others, and the skills that agents propose, with their files',
    auth: 'operator',
    answers: { 200: { description: 'All skills', schema: listSchema } },
    async handle() {
      const { skillsPage } = await import('./skill-answers.ts')
      return skillsPage(host, library)
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/skills/:name',
    summary: 'One skill with its files',
    auth: 'operator',
    answers: { 200: { description: 'The skill', schema: oneSchema } },
    async handle({ params: { name = '' } }) {
      const { skillWithFiles } = await import('./skill-answers.ts')
      return skillWithFiles(library, name)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/skills/waiting/:name/accept',
    summary: 'Install a proposed skill as it is; the hash identifies the content that the operator has read',
    auth: 'operator',
    body: v.object({ hash: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)) }),
    answers: {
      200: { description: 'It is in force', schema: v.object({ accepted: v.string(), folder: v.string() }) },
      409: { description: 'It has another content now' },
    },
    async handle({ by, params: { name = '' }, body: { hash } }) {
      const { acceptProposal } = await import('./proposals.ts')
      const folder = await acceptProposal(host, library, { name, hash, by })
      host.log.info('skill accepted', { skill: name, by })
      if (!library.skills.some((skill) => skill.name === name))
        throw new AppError('conflict', `The skill '${name}' is installed as ${folder}, but is not in force; see its problems`)
      return { accepted: name, folder }
    },
  }),
]
