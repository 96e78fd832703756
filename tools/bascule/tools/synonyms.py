"""Words that mean the same where tools are concerned, in English and Chinese. Data, reviewed row by row.

A tool that says one word of a row is also found by the others, with less weight than by its own words. A row
holds what people say for one thing; a word may stand in several rows. Chinese is listed as people type it.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Final

from bascule.tools.words import split_words

ROWS: Final = (
    # what is done
    "get fetch read retrieve load lookup view show 获取 读取 查看 显示",
    "find search lookup query locate filter look 查找 搜索 查询 检索 寻找",
    "list enumerate all browse show overview 列表 列出 清单 所有 全部",
    "create add new make insert open register 创建 新建 添加 新增 增加 开通 登记",
    "update edit change modify set patch adjust alter rename 更新 修改 编辑 更改 调整",
    "delete remove erase drop destroy purge discard trash 删除 移除 清除",
    "send deliver dispatch transmit notify forward 发送 发出 寄出",
    "cancel abort revoke void stop withdraw undo 取消 撤销 撤回 作废",
    "close resolve finish complete end done 关闭 完成 结束 解决",
    "start begin launch run trigger execute kick 启动 开始 运行 执行 触发",
    "stop halt pause suspend freeze hold 停止 暂停 冻结",
    "restart reboot retry rerun again resume 重启 重试 重新 恢复",
    "approve accept confirm authorize sign 批准 同意 确认 审批",
    "reject decline deny refuse 拒绝 驳回",
    "assign allocate delegate owner reassign 分配 指派 委派",
    "upload put store save write attach 上传 保存 存储 写入",
    "download export pull extract 下载 导出",
    "import ingest load 导入",
    "move transfer shift relocate migrate 移动 转移 迁移",
    "copy duplicate clone replicate 复制 克隆",
    "count number total how many sum tally 数量 统计 总数 计数 多少",
    "summarize summary report overview digest aggregate 汇总 总结 摘要 概览 报告 报表",
    "compare diff difference delta 比较 对比 差异",
    "convert exchange translate transform 转换 换算 兑换",
    "translate translation language 翻译",
    "check verify validate test inspect examine 检查 验证 校验 核实",
    "calculate compute estimate work 计算 估算",
    "schedule plan book reserve arrange appointment 安排 预约 预订 计划 排期",
    "book reserve reservation booking 预订 订票 订房",
    "subscribe follow watch 订阅 关注",
    "block ban disable deactivate lock suspend 禁用 封禁 停用 锁定",
    "enable activate unlock turn 启用 激活 解锁",
    "merge combine join consolidate 合并",
    "grant allow permit give 授予 授权",
    "track trace follow monitor locate 跟踪 追踪 监控 定位",
    "rate score review rank 评分 打分 评价",
    "return refund reimburse reimbursement money back chargeback 退款 退货 退还 退钱 报销",
    "pay payment settle payout charge 支付 付款 缴费 收费",
    # what it is done to
    "customer client buyer account patron consumer 客户 顾客 买家",
    "contact person people lead 联系人 人员",
    "user member account person login 用户 会员 成员 账号",
    "employee staff worker colleague person hire team 员工 雇员 职员 同事",
    "order purchase buy 订单 购买 采购 下单",
    "product item article goods sku merchandise 产品 商品 货物 物品",
    "invoice bill billing receipt 发票 账单 收据",
    "price cost amount fee rate charge 价格 费用 金额 报价 多少钱",
    "quote quotation estimate offer proposal 报价 报价单",
    "discount coupon promo promotion voucher 折扣 优惠 优惠券 促销",
    "stock inventory warehouse availability quantity supply 库存 存货 仓库 备货",
    "shipment delivery shipping parcel package dispatch consignment 发货 物流 快递 包裹 运输 配送 货运",
    "carrier courier forwarder 承运 快递公司",
    "mail email message inbox letter 邮件 邮箱 电子邮件 信件",
    "message chat text sms dm 消息 短信 信息 聊天",
    "call phone telephone dial 电话 通话 呼叫",
    "notification alert alarm warning push 通知 提醒 警报 告警 推送",
    "meeting event appointment calendar invite 会议 日程 活动 约会",
    "calendar schedule agenda diary 日历 日程 行程",
    "room venue 会议室 房间",
    "ticket issue case incident request bug 工单 问题 故障 请求",
    "task todo job assignment 任务 待办 作业",
    "project workspace board 项目",
    "file document doc attachment paper 文件 文档 附件",
    "folder directory path 文件夹 目录",
    "page wiki article note 页面 网页 文章 笔记",
    "comment reply note feedback 评论 回复 备注 反馈 意见",
    "image picture photo 图片 照片 图像",
    "video clip movie 视频 影片",
    "database table sql rows records query 数据库 表格 数据",
    "log logs trace output record 日志 记录",
    "metric metrics statistic kpi measure analytics 指标 统计 分析",
    "build pipeline ci compile 构建 流水线 编译",
    "deploy release rollout ship publish 部署 发布 上线",
    "rollback revert undo restore 回滚 还原 恢复",
    "server host machine instance vm node 服务器 主机 机器 实例",
    "container pod docker 容器",
    "repository repo code git 仓库 代码库 代码",
    "branch commit pull merge 分支 提交",
    "secret credential password token key 密码 密钥 凭证",
    "permission access role right rights privilege 权限 角色 访问",
    "account ledger bank balance 账户 余额 银行",
    "balance funds money available 余额 资金",
    "transaction transfer wire movement entry 交易 转账 流水",
    "expense expenses cost spending travel claim 费用 开支 支出 报销",
    "salary payroll wage pay compensation 工资 薪水 薪资 薪酬",
    "leave vacation holiday absence pto off 假期 请假 休假 年假",
    "candidate applicant recruit hiring resume 候选人 应聘 招聘 简历",
    "budget limit allowance spending 预算 额度",
    "tax vat duty 税 税费 税务",
    "contract agreement deal 合同 协议",
    "deal opportunity pipeline sale sales 商机 销售 机会",
    "company organization organisation business firm account 公司 企业 组织 机构",
    "address location place where 地址 地点 位置",
    "weather forecast temperature rain 天气 预报 气温 下雨",
    "flight plane airline air fly 航班 飞机 机票",
    "hotel lodging accommodation stay 酒店 宾馆 住宿",
    "train rail railway 火车 高铁",
    "car vehicle rental driver 汽车 车辆 租车",
    "currency forex fx exchange 货币 汇率 外汇",
    "date day time when clock timezone 日期 时间 时区",
    "patient medical health clinic doctor 病人 患者 医疗 医生",
    "prescription medication drug medicine 处方 药品 药物",
    "student course class lesson grade 学生 课程 成绩",
    "survey form questionnaire poll 问卷 调查 表单",
    "campaign marketing newsletter advertisement ad 营销 广告 活动",
    "supplier vendor provider 供应商 厂商",
    "device sensor thermostat machine 设备 传感器",
    "light lamp bulb 灯 灯光",
    "language locale 语言",
    "birthday birth born 生日",
    "link url website site web 链接 网址 网站",
    "tag label category 标签 分类 类别",
    "version revision history 版本 历史",
    "status state progress condition 状态 进度 情况",
    "detail details information info full 详情 详细 信息",
    "recent latest newest last 最近 最新",
    "overdue late unpaid outstanding due 逾期 未付 过期",
    "backup snapshot 备份 快照",
    "domain dns record 域名",
    "certificate ssl tls 证书",
    "error exception failure crash 错误 异常 失败 崩溃",
    "map route directions distance 地图 路线 距离 导航",
    "song music track playlist 歌曲 音乐",
    "recipe food meal dish restaurant 食谱 菜谱 餐厅 食物",
)
"""One meaning a row; words are separated by spaces."""


@cache
def _others() -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in ROWS:
        words = row.split()
        pieces = {piece for word in words for piece in split_words(word)}
        for word in words:
            for piece in split_words(word):
                found[piece] |= pieces
    return {word: frozenset(others - {word}) for word, others in found.items()}


def synonyms_of(word: str) -> frozenset[str]:
    """Return the words that mean the same as one that `split_words` gave, without itself."""
    others = _others()
    found = others.get(word)
    if found is None and len(word) > 3 and word.endswith("s"):
        found = others.get(word[:-1])
    return found or frozenset()
