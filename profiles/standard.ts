import fedchat from '@sluice/channel-fedchat'
import workchat from '@sluice/channel-workchat'
import { main } from '@sluice/cli'
import dashboard from '@sluice/dashboard'
import mcp from '@sluice/mcp'
import fsrestrict from '@sluice/sandbox-fsrestrict'
import schedule from '@sluice/tool-schedule'
import skills from '@sluice/tool-skills'
import web from '@sluice/tool-web'
import webPush from '@sluice/web-push'
import { always } from './always.ts'

await main({ profile: 'standard', features: [...always, fedchat, workchat, fsrestrict, mcp, skills, schedule, web, dashboard, webPush] })
