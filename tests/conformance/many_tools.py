"""Five hundred tools as a company's services would offer them, made by rule from what the services are about.

Each service has things that can be searched, read, listed, made, changed and deleted, and a few tools of its
own. The suites of the conformance cases come on top, as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bascule.tools import AnyTool, load_tools, tool

SUITES = Path(__file__).parent / "cases" / "suites"

# service -> things (name: what it is), and further tools (name, parameters, what it does)
SERVICES: dict[str, tuple[dict[str, str], list[tuple[str, str, str]]]] = {
    "crm": (
        {
            "contact": "person at a customer",
            "company": "customer company",
            "deal": "sales deal in the pipeline",
        },
        [
            ("merge_contacts", "keep_id drop_id", "Merge two contacts that are the same person."),
            ("move_deal_stage", "deal_id stage", "Move a deal to another stage of the pipeline."),
            ("log_call", "contact_id notes", "Note a phone call with a contact."),
        ],
    ),
    "billing": (
        {"invoice": "invoice to a customer", "subscription": "recurring plan", "coupon": "discount code"},
        [
            ("refund_payment", "payment_id amount", "Give a customer money back for a payment."),
            ("charge_card", "customer_id amount", "Charge the credit card of a customer."),
            ("send_invoice", "invoice_id", "Send an invoice to the customer by mail."),
            ("list_overdue_invoices", "days", "List invoices that were not paid in time."),
            ("cancel_subscription", "subscription_id at_period_end", "End a subscription."),
        ],
    ),
    "mailbox": (
        {
            "draft": "message that is not sent yet",
            "folder": "folder of mail",
            "filter": "rule for incoming mail",
        },
        [
            ("send_email", "to subject body", "Send an e-mail message."),
            ("reply", "message_id body", "Answer a message."),
            ("search_messages", "query", "Find messages in the mailbox."),
            ("forward_message", "message_id to", "Pass a message on to somebody else."),
            ("mark_as_spam", "message_id", "Report a message as junk."),
        ],
    ),
    "agenda": (
        {"event": "meeting in a calendar", "room": "meeting room", "reminder": "reminder"},
        [
            ("find_free_slots", "people minutes", "Find times at which all people are available."),
            ("book_room", "room_id start end", "Reserve a meeting room."),
            ("invite", "event_id email", "Ask somebody to a meeting."),
            ("decline_event", "event_id", "Say that you do not come to a meeting."),
        ],
    ),
    "people": (
        {"employee": "member of staff", "leave_request": "request for days off", "position": "open job"},
        [
            ("approve_leave", "request_id", "Approve a vacation request."),
            ("get_org_chart", "department", "Show who reports to whom."),
            ("run_payroll", "month", "Pay the salaries of a month."),
            ("get_remaining_vacation", "employee_id", "Tell how many vacation days are left."),
        ],
    ),
    "recruiting": (
        {"candidate": "applicant for a job", "interview": "talk with an applicant"},
        [
            ("score_resume", "candidate_id", "Rate a CV against the position."),
            ("send_offer", "candidate_id salary", "Offer a job to a candidate."),
            ("reject_candidate", "candidate_id reason", "Turn an applicant down."),
        ],
    ),
    "helpdesk": (
        {"ticket": "support request", "article": "knowledge base article", "macro": "prepared answer"},
        [
            ("assign_ticket", "ticket_id agent", "Give a ticket to an agent."),
            ("escalate_ticket", "ticket_id reason", "Hand a ticket to the second level."),
            ("close_ticket", "ticket_id resolution", "Mark a ticket as solved."),
            ("get_satisfaction", "period", "Show how content customers are with support."),
        ],
    ),
    "wms": (
        {
            "product": "product in the catalogue",
            "warehouse": "storage site",
            "supplier": "company we buy from",
        },
        [
            ("get_stock_level", "sku warehouse", "Tell how many pieces of a product are available."),
            ("reorder", "sku quantity", "Order more of a product from its supplier."),
            ("transfer_stock", "sku source target quantity", "Move pieces from one warehouse to another."),
            ("count_inventory", "warehouse", "Start a stocktaking."),
        ],
    ),
    "shipping": (
        {"shipment": "parcel on its way", "carrier": "courier company"},
        [
            ("track_parcel", "tracking_number", "Tell where a parcel is."),
            ("estimate_shipping", "weight country", "Work out what sending a parcel costs."),
            ("print_label", "shipment_id", "Make the address label of a parcel."),
            ("schedule_pickup", "date address", "Have a courier fetch parcels."),
        ],
    ),
    "repo": (
        {"issue": "bug or wish", "pull_request": "proposed change of code", "release": "published version"},
        [
            ("merge_pull_request", "number", "Merge a proposed change into the main branch."),
            ("get_diff", "base head", "Show what changed between two commits."),
            ("search_code", "query", "Find text in source code."),
            ("create_branch", "name source", "Start a new line of development."),
            ("blame", "path line", "Tell who last changed a line of code."),
        ],
    ),
    "ci": (
        {"pipeline": "sequence of build steps", "runner": "machine that builds"},
        [
            ("trigger_build", "branch", "Start a build."),
            ("get_build_log", "build_id", "Show the output of a build."),
            ("cancel_build", "build_id", "Stop a build that is running."),
            ("list_failed_tests", "build_id", "List the tests that did not pass."),
        ],
    ),
    "deploys": (
        {"environment": "place where software runs", "secret": "credential of a service"},
        [
            ("deploy_service", "service version", "Bring a version of a service into production."),
            ("rollback_service", "service", "Go back to the version before."),
            ("restart_service", "service", "Stop a service and start it again."),
            ("scale_service", "service replicas", "Change how many copies of a service run."),
            ("rotate_credentials", "secret_id", "Replace a password or key by a new one."),
        ],
    ),
    "monitoring": (
        {"alert": "warning about a system", "dashboard": "page of charts", "incident": "outage"},
        [
            ("query_metrics", "expression start end", "Read measured values such as CPU or latency."),
            ("search_logs", "query start end", "Find lines in the logs of services."),
            ("acknowledge_alert", "alert_id", "Say that somebody takes care of an alert."),
            ("page_oncall", "message", "Wake up the engineer on duty."),
        ],
    ),
    "drive": (
        {"document": "document with text", "shared_folder": "folder for several people"},
        [
            ("upload_file", "path content", "Store a file."),
            ("download_file", "file_id", "Get the content of a file."),
            ("share_file", "file_id email role", "Let somebody else see or edit a file."),
            ("convert_to_pdf", "file_id", "Make a PDF of a document."),
            ("restore_version", "file_id version", "Bring an older version of a file back."),
        ],
    ),
    "chat": (
        {"channel": "chat room", "user_group": "group of chat users"},
        [
            ("post_message", "channel text", "Write into a channel."),
            ("send_direct_message", "user text", "Write to one person privately."),
            ("set_status", "text emoji", "Show what you are doing."),
            ("add_reaction", "message_id emoji", "Put an emoji on a message."),
        ],
    ),
    "trips": (
        {"trip": "business trip", "traveller": "person who travels"},
        [
            ("search_flights", "origin destination date", "Find flights."),
            ("book_hotel", "city check_in check_out", "Reserve a hotel room."),
            ("rent_car", "city start end", "Rent a car."),
            ("check_visa", "country nationality", "Tell whether a traveller needs a visa."),
            ("book_train", "origin destination date", "Buy a railway ticket."),
        ],
    ),
    "expense": (
        {"expense_report": "collection of receipts", "receipt": "proof of a purchase"},
        [
            ("submit_report", "report_id", "Hand an expense report in."),
            ("reimburse", "report_id", "Pay an employee back what they spent."),
            ("scan_receipt", "image", "Read amount and date off a photo of a receipt."),
        ],
    ),
    "finance": (
        {"account": "bank account", "budget": "planned spending of a department", "journal_entry": "booking"},
        [
            ("transfer_money", "source target amount", "Wire money to another account."),
            ("get_exchange_rate", "base quote", "Tell what one currency costs in another."),
            ("close_month", "month", "Close the books of a month."),
            ("get_cash_flow", "start end", "Show money coming in and going out."),
            ("calculate_vat", "amount country", "Work out the sales tax of an amount."),
        ],
    ),
    "marketing": (
        {
            "campaign": "advertising campaign",
            "newsletter": "mail to many subscribers",
            "audience": "target group",
        },
        [
            ("get_click_rate", "campaign_id", "Tell how many people clicked."),
            ("schedule_post", "network text time", "Publish a post on a social network later."),
            ("split_test", "campaign_id", "Compare two variants of an advert."),
        ],
    ),
    "weather": (
        {},
        [
            ("get_forecast", "city days", "Tell what the weather will be like."),
            ("get_air_quality", "city", "Tell how clean the air is."),
            ("get_sunrise", "city date", "Tell when the sun rises and sets."),
        ],
    ),
    "maps": (
        {"place": "shop, sight or address on the map"},
        [
            ("get_directions", "origin destination mode", "Find the way from one place to another."),
            ("geocode", "address", "Turn an address into coordinates."),
            ("get_distance", "origin destination", "Tell how far two places are apart."),
        ],
    ),
    "home": (
        {"scene": "saved combination of light and heat"},
        [
            ("set_thermostat", "room celsius", "Change the temperature of a room."),
            ("switch_light", "room on", "Turn the light of a room on or off."),
            ("lock_door", "door", "Lock a door."),
            ("show_camera", "camera", "Show the picture of a camera."),
        ],
    ),
    "clinic": (
        {
            "patient": "person under treatment",
            "appointment": "visit to a doctor",
            "prescription": "ordered drug",
        },
        [
            ("get_lab_results", "patient_id", "Show the results of blood tests."),
            ("check_interactions", "drugs", "Tell whether drugs go together."),
        ],
    ),
    "school": (
        {"student": "pupil", "course": "class that is taught", "exam": "test"},
        [
            ("enroll", "student_id course_id", "Sign a student up for a course."),
            ("get_grades", "student_id", "Show the marks of a student."),
            ("take_attendance", "course_id present", "Note who is there."),
        ],
    ),
    "legal": (
        {"contract": "agreement with a partner", "clause": "paragraph of a contract"},
        [
            ("request_signature", "contract_id email", "Have somebody sign a contract."),
            ("list_expiring_contracts", "days", "List contracts that end soon."),
            ("redline", "contract_id other_id", "Show how two contracts differ."),
        ],
    ),
    "translate": (
        {"glossary": "list of terms and their translation"},
        [
            ("translate_text", "text target_language", "Translate text into another language."),
            ("detect_language", "text", "Tell which language a text is in."),
        ],
    ),
    "media": (
        {"playlist": "list of songs", "video": "film", "photo_album": "collection of pictures"},
        [
            ("play_song", "title", "Play music."),
            ("transcribe", "audio", "Write down what is said in a recording."),
            ("resize_image", "image width height", "Make a picture smaller or larger."),
            ("generate_thumbnail", "video_id", "Make a small preview picture of a video."),
        ],
    ),
    "iam": (
        {"user": "account of a person", "role": "set of permissions", "api_key": "key for programs"},
        [
            ("reset_password", "user_id", "Send a link to choose a new password."),
            ("grant_access", "user_id resource", "Let a user into a system."),
            ("revoke_access", "user_id resource", "Take a permission away."),
            ("list_login_attempts", "user_id", "Show when somebody tried to sign in."),
            ("disable_user", "user_id", "Lock an account."),
        ],
    ),
    "kefu": (
        {},
        [
            ("chaxun_wuliu", "danhao", "查询快递单号的物流进度。"),
            ("tuikuan_shenqing", "dingdan", "为订单提交退款申请。"),
            ("fapiao_kaiju", "dingdan taitou", "为订单开具增值税发票。"),
            ("huiyuan_jifen", "yonghu", "查询会员的积分余额。"),
        ],
    ),
}

_ACTIONS = (
    ("search_{}s", "query limit", "Find each {what} that fits some words."),
    ("get_{}", "{}_id", "Show all details of one {what}."),
    ("list_{}s", "cursor limit", "List every {what}, a page at a time."),
    ("create_{}", "name details", "Add a new {what}."),
    ("update_{}", "{}_id changes", "Change one {what}."),
    ("delete_{}", "{}_id", "Remove one {what} for good."),
)


def make_tools() -> list[AnyTool]:
    """Return the tools of all services, then those of the suites under the suite's name."""
    made = [
        _make(f"{service}.{name}", parameters.split(), text)
        for service, (things, own) in SERVICES.items()
        for name, parameters, text in [*_about(things), *own]
    ]
    for path in sorted(SUITES.glob("*.py")):
        made += [
            tool(name=f"{path.stem}.{each.name}", effects=each.effects)(each.function)
            for each in suite_tools(path)
        ]
    return made


def suite_tools(path: Path) -> list[AnyTool]:
    """Return the tools of one suite."""
    return load_tools(str(path))


def _about(things: dict[str, str]) -> list[tuple[str, str, str]]:
    return [
        (name.format(thing), parameters.format(thing), text.format(what=what))
        for thing, what in things.items()
        for name, parameters, text in _ACTIONS
    ]


def _make(name: str, parameters: list[str], text: str) -> AnyTool:
    annotations: dict[str, Any] = dict.fromkeys(parameters, str)
    scope: dict[str, Any] = {}
    exec(f"def do({', '.join(parameters)}): ...", scope)  # our own words, above
    function: Callable[..., Any] = scope["do"]
    function.__doc__ = text
    function.__annotations__ = {**annotations, "return": dict[str, str]}
    return tool(name=name, effects="read")(function)
