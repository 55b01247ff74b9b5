/** `/api/notices`: the notices that operators got. */
import { listNotices, type Runtime } from '@sluice/runtime'
import { defineRoute, NOTICE_KINDS, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { wholeText } from './query.ts'

const pageSchema = v.object({
  notices: v.array(
    v.object({
      at: v.pipe(v.string(), v.description('RFC 3339')),
      kind: v.pipe(v.picklist(NOTICE_KINDS), v.description('As in `[notify] kinds`')),
      about: v.pipe(v.string(), v.description('The thing that the notice is about, such as a channel')),
      text: v.string(),
    }),
  ),
})

export const noticeRoutes = ({ store }: Runtime): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/notices',
    summary: 'What operators were told of, newest first; the last 100 are kept',
    auth: 'operator',
    query: v.object({ limit: wholeText(1, 100, 100) }),
    answers: { 200: { description: 'The notices', schema: pageSchema } },
    handle: async ({ query: { limit } }) => ({ notices: await listNotices(store, limit) }),
  }),
]
